import { StatusCodes } from "node-opcua-client";
import { expect, it } from "vitest";
import { KNOWN_STATUSES } from "../../src/model/words/opcua-statuses.ts";
import { faultOf, isBusy, isTooMuch, qualityOf, STATUS } from "./status-codes.ts";

it("has the specification's numbers", () => {
  for (const [name, code] of Object.entries(STATUS))
    expect((StatusCodes as unknown as Record<string, { value: number }>)[name]?.value, name).toBe(code);
});

it("has words only for statuses that there are", () => {
  expect(KNOWN_STATUSES.filter((name) => !(name in StatusCodes))).toEqual([]);
});

it("judges by severity, whatever the flags", () => {
  expect(qualityOf(0)).toBe("good");
  expect(qualityOf(StatusCodes.GoodClamped.value)).toBe("good");
  expect(qualityOf(StatusCodes.UncertainLastUsableValue.value | 0x400)).toBe("uncertain");
  expect(qualityOf(0x8000_0000)).toBe("bad");
  expect(qualityOf(0xc000_0000)).toBe("bad");
});

it("names faults with flags set, and falls back to device_error", () => {
  expect(faultOf(STATUS.BadNodeIdUnknown | 0x480)).toBe("not_found");
  expect(faultOf(STATUS.BadUserAccessDenied)).toBe("access_denied");
  expect(faultOf(STATUS.BadNoCommunication)).toBe("no_answer");
  expect(faultOf(StatusCodes.BadOutOfService.value)).toBe("device_error");
  expect(faultOf(0x8123_0000)).toBe("device_error");
  expect(isTooMuch(STATUS.BadEncodingLimitsExceeded)).toBe(true);
  expect(isTooMuch(STATUS.BadSessionClosed)).toBe(false);
  expect(isBusy(STATUS.BadServerTooBusy)).toBe(true);
});
