import path from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { loadProfile } from "../../src/configuration/profile-file.ts";
import type { FaultError } from "../../src/model/fault.ts";
import { parseAddress } from "./address.ts";
import { bytesWith, compile, valuesFor } from "./compiled.ts";
import { fenceOf, requestIn } from "./fence.ts";
import { frameOf } from "./framing.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const ODAC = compile(loadProfile(path.join(ROOT, "config/profiles/odac-host.yaml")), { protocol_override: "none" }, { group: 1, unit: 7 });
const LINES = compile(loadProfile(path.join(ROOT, "drivers/plastcontrol/example-profile.yaml")), { readout_mode: "active" }, {});
const BINARY = compile(
  loadProfile(path.join(ROOT, "drivers/vendor_b/example-profile.yaml")),
  { machine: "C5", initialization_mode: "Default" },
  {},
);

test.each<[name: string, profile: typeof ODAC, frame: string, passes: boolean]>([
  ["a poll", ODAC, "\x041177PV\x05", true],
  ["a poll of another unit", ODAC, "\x041178PV\x05", false],
  ["a selection, which writes", ODAC, "\x041177\x02PV99\x03\x3f\x05", false],
  ["a poll with a value in it", ODAC, "\x041177PV 99\x05", false],
  ["two polls in one", ODAC, "\x041177PV\x05\x041177SP\x05", false],
  ["a poll without an end", ODAC, "\x041177PV", false],
  ["a line of the profile", LINES, "?VALUE ZONE1\r\n", true],
  ["a line that sets", LINES, "!VALUE ZONE1=5\r\n", false],
  ["a line with another behind it", LINES, "?VALUE ZONE1\r\n!STOP\r\n", false],
  ["an argument that is too long", LINES, "?VALUE ABCDEFGHIJKLM\r\n", false],
])("%s (%#)", (_name, profile, frame, passes) => {
  expect(fenceOf(profile)(Buffer.from(frame, "latin1")) === true).toBe(passes);
});

test("the start-up of another machine does not pass, nor a frame with a wrong checksum", () => {
  const begin = (machine: number) => frameOf(BINARY.framing, Buffer.from([1, machine, 0]));
  const fence = fenceOf(BINARY);
  expect([fence(begin(5) as Buffer), typeof fence(begin(6) as Buffer)]).toEqual([true, "string"]);
  const damaged = Buffer.from(begin(5) as Buffer);
  damaged.writeUInt8(damaged.readUInt8(damaged.length - 1) ^ 1, damaged.length - 1);
  expect(fence(damaged)).toContain("wrong checksum");
});

test("whatever address the configuration has, what is sent for it is one request of the profile with that argument, or nothing", () => {
  const near = fc.oneof(fc.string({ maxLength: 14 }), fc.stringMatching(/^[A-Z0-9.;=\r\n?! /]{1,14}$/));
  fc.assert(
    fc.property(fc.constantFrom(ODAC, LINES), near, (compiled, text) => {
      let parsed: ReturnType<typeof parseAddress>;
      try {
        parsed = parseAddress(compiled === LINES ? `value/${text}` : text, undefined, compiled.profile);
      } catch (error) {
        expect((error as FaultError).fault).toBe("address_invalid");
        return;
      }
      const request = compiled.requests.get(parsed.address.request);
      if (!request?.send) throw new Error("a request without send");
      const { args } = parsed.address;
      const payload = bytesWith(request.send, valuesFor(compiled, request, args));
      const frame = compiled.framing.isForRequests ? frameOf(compiled.framing, payload) : payload;
      expect(requestIn(compiled, frame as Buffer)).toEqual({ request, args });
      expect((frame as Buffer).toString("latin1")).toMatch(/^[^\r\n]*(\r\n)?$/);
    }),
    { numRuns: 1000 },
  );
});

test("whatever bytes, the fence gives true or a text", () => {
  fc.assert(
    fc.property(fc.constantFrom(ODAC, LINES, BINARY), fc.uint8Array({ maxLength: 40 }), (compiled, bytes) => {
      const said = fenceOf(compiled)(bytes);
      expect(said === true || typeof said === "string").toBe(true);
    }),
    { numRuns: 500 },
  );
});
