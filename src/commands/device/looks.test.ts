import { expect, it } from "vitest";
import modbus from "../../../drivers/modbus_tcp/driver.ts";
import opcua from "../../../drivers/opcua/driver.ts";
import type { LiveValue } from "../../model/source-insight.ts";
import type { Reading } from "../../model/value.ts";
import { Looks, lookWords, VariableLook } from "./looks.ts";
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

/** A readout of a variable, as the service gives it; `bytes`: of the wire. */
const insight = (n: number, value: number, bytes: string, more: Partial<LiveValue> = {}) =>
  ({
    readout: {
      time: `2026-11-20T09:00:0${n}.000Z`,
      values: [{ type: "uint32", quality: "good", value: String(value), raw: null, ...more }],
    },
    explained: { wire: { state: "read", bytes, form: null, value: String(value), orders: [] } },
  }) as unknown as Parameters<VariableLook["add"]>[0];

it("looks on at a double word of the service while it may be a REAL, and names it after three readouts", () => {
  const looks = new VariableLook();
  const reals = [0x41ac_0000, 0x41ad_0000, 0x41ae_0000];
  // Words the other way round on the wire; the same readout twice counts once.
  const readouts = [0, 0, 1, 2].map((n) => insight(n, reals[n] ?? 0, `0000${(reals[n] ?? 0).toString(16).slice(0, 4)}`));
  expect(readouts.map((one) => looks.add(one))).toEqual([true, true, true, false]);
  const look = looks.found("uint32");
  expect(look).toEqual({ type: "REAL", value: 21.75, readings: 3 });
  expect(look && lookWords(look)).toBe("all 3 values are plausible as REAL (21.75)");
});

it("names digits of a word of the service that may be BCD", () => {
  const looks = new VariableLook();
  for (const [n, word] of [0x1997, 0x1998, 0x2001].entries())
    looks.add(insight(n, word, word.toString(16), { type: "uint16", value: "0", raw: String(word) }));
  expect(looks.found("uint16")).toEqual({ type: "BCD", value: 2001, readings: 3 });
});

it.each([
  ["a small count", insight(0, 235, "000000eb")],
  ["a value that the driver made of other bits, as of BCD", insight(0, 1997, "1997", { type: "uint16" })],
  ["a text", insight(0, 0, "41", { type: "string(1)", value: '"A"' })],
  ["a bad value", insight(0, 0x41ac_0000, "41ac0000", { quality: "bad", value: null })],
])("does not look on at %s", (_, one) => {
  const looks = new VariableLook();
  expect(looks.add(one)).toBe(false);
  expect(looks.found("uint32")).toBeUndefined();
});
