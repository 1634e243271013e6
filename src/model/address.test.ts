import net from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { deviceKey, literalAddress } from "./address.ts";

describe("an address", () => {
  it.each([
    ["10.0.0.1", "10.0.0.1", 4],
    ["10.0.0.1.", "10.0.0.1", 4],
    ["127.1", "127.0.0.1", 4],
    ["0x7f.1", "127.0.0.1", 4],
    ["0X7F.0.0.1", "127.0.0.1", 4],
    ["2130706433", "127.0.0.1", 4],
    ["010.0.0.1", "8.0.0.1", 4],
    ["::1", "::1", 6],
    ["[::1]", "::1", 6],
    ["0:0:0:0:0:0:0:1", "::1", 6],
    ["FD00::00AB", "fd00::ab", 6],
    ["::ffff:10.0.0.1", "10.0.0.1", 4],
    ["::FFFF:a00:1", "10.0.0.1", 4],
    ["FE80::1%eth0", "fe80::1%eth0", 6],
  ] as const)("is known and has one form: %s", (host, address, family) => expect(literalAddress(host)).toEqual({ address, family }));

  it.each([
    "plc",
    "plc.lab",
    "1e3.com",
    "10.0.0.256",
    "08.1.1.1",
    "1.2.3.4.5",
    "",
    ".",
    "a b",
    "10.0.0.1:502",
    "::1::",
    "[plc]",
    "fe80::1%a%b",
    "10.0.0.1/x",
  ])("is not %j", (host) => expect(literalAddress(host)).toBeUndefined());

  it("of any kind gives one that sockets take, and itself again", () => {
    const any = fc.oneof(fc.ipV4(), fc.ipV4Extended(), fc.ipV6());
    fc.assert(
      fc.property(any, (host) => {
        const found = literalAddress(host);
        expect(found && net.isIP(found.address)).toBe(found?.family);
        expect(found && literalAddress(found.address)).toEqual(found);
      }),
    );
  });
});

describe("deviceKey", () => {
  it.each([
    ["PLC-7.Plant.Lab.", "plc-7.plant.lab"],
    ["plc_1", "plc_1"],
    ["Straße.lab", "xn--strae-oqa.lab"],
    ["xn--strae-oqa.lab", "xn--strae-oqa.lab"],
    ["127.1", "127.0.0.1"],
    ["::ffff:7f00:1", "127.0.0.1"],
    ["[FD00::1]", "fd00::1"],
  ])("of %s is %s", (host, key) => expect(deviceKey(host)).toBe(key));

  it("is total, and one for all spellings of a name", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (host) => {
        expect(typeof deviceKey(host)).toBe("string");
      }),
    );
    fc.assert(
      fc.property(fc.domain(), (name) => {
        expect(deviceKey(`${name.toUpperCase()}.`)).toBe(deviceKey(name));
        expect(deviceKey(deviceKey(name))).toBe(deviceKey(name));
      }),
    );
  });
});
