import { expect, it } from "vitest";
import modbus from "../../../drivers/modbus_tcp/driver.ts";
import opcua from "../../../drivers/opcua/driver.ts";
import type { Reading } from "../../model/value.ts";
import { Looks } from "./looks.ts";
import { parseAddresses } from "./read-input.ts";

const good = (value: number): Reading => ({ quality: "good", value });
function hints(words: readonly string[], ...passes: readonly (readonly (Reading | undefined)[])[]): readonly string[] {
  const looks = new Looks(modbus, parseAddresses(modbus, words, undefined, modbus.settings.parse({})));
  for (const readings of passes) looks.add(readings);
  return looks.hints();
}

it("names the address, the value and the type to write", () => {
  // 21.5, 21.625 and 21.75 as IEEE 754 has them.
  const reals = [0x41ac_0000, 0x41ad_0000, 0x41ae_0000].map((bits) => [good(bits)]);
  expect(hints(["holding:3:uint32"], ...reals)).toEqual([
    "holding:3: all 3 values are plausible as REAL (21.75): compare with the device, and write holding:3:REAL if it fits",
  ]);
  const digits = [0x1997, 0x1998, 0x2001].map((word) => [good(word)]);
  expect(hints(["holding:7"], ...digits)).toEqual([expect.stringContaining("(2001): compare with the device, and write holding:7:BCD")]);
});

it("says nothing of a type that the driver reads in its own way, of too few readings, and of bad ones", () => {
  const digits = [0x1997, 0x1998, 0x2001].map((word) => [good(word)]);
  expect(hints(["holding:7:BCD"], ...digits)).toEqual([]);
  expect(hints(["holding:7"], ...digits.slice(1))).toEqual([]);
  expect(hints(["holding:7"], ...digits.slice(1), [{ quality: "bad", fault: "no_answer" }], [undefined])).toEqual([]);
});

it("says nothing of BCD where the driver has no such type", () => {
  const looks = new Looks(opcua, [{ text: "ns=2;s=a", address: {}, type: { scalar: "uint16" } }]);
  for (const word of [0x1997, 0x1998, 0x2001]) looks.add([good(word)]);
  expect(looks.hints()).toEqual([]);
});
