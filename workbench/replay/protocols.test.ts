import { describe, expect, it } from "vitest";
import { DRIVERS } from "../../drivers/index.ts";
import { isDevicePort } from "./protocols.ts";

describe("a replay, which loads no driver", () => {
  it.each(Object.entries(DRIVERS))("knows the standard port of %s", async (_, { driver }) => {
    const { standardPort } = (await driver()).default;
    expect(standardPort === undefined || isDevicePort(standardPort)).toBe(true);
  });

  it("takes no other port for one of a device", () => expect(isDevicePort(50_000)).toBe(false));
});
