import { afterEach, describe, expect, it } from "vitest";
import s7plus from "../../drivers/s7plus/driver.ts";
import { type S7PlusPlc, startS7PlusPlc } from "../../drivers/s7plus/simulator.ts";
import { running, source, variable } from "../../test/support/agent.ts";
import { textsOf } from "../model/testing/warnings.ts";
import type { Reading, Value } from "../model/value.ts";

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const NUMBERS = [
  { name: "a", type: "DINT", value: 10 },
  { name: "b", type: "DINT", value: 20 },
  { name: "c", type: "DINT", value: 30 },
];
const blockOf = (number: number, fields = NUMBERS) => ({ number, name: `Block_${number}`, fields });

async function plcWith(program: Parameters<typeof startS7PlusPlc>[0] extends infer O ? NonNullable<O> : never): Promise<S7PlusPlc> {
  const plc = await startS7PlusPlc(program);
  cleanUp.push(() => plc.close());
  return plc;
}

/** Reads these symbols so often; gives the readings of each readout so far. */
async function reading(plc: S7PlusPlc, symbols: readonly string[], interval = 600, local: Readonly<Record<string, unknown>> = {}) {
  const kept: (readonly (Reading | undefined)[])[] = [];
  const { agent, report } = running({
    drivers: { s7plus: { driver: async () => ({ default: s7plus }) } },
    // The driver reuses its readings.
    emit: (_, { readings }) => void kept.push(structuredClone(readings)),
  });
  const listed = source(1, plc.port, { variables: symbols.map((symbol, i) => variable(1, i, symbol)), local });
  const details = { type: "s7plus", host: "127.0.0.1", port: plc.port, password: { type: "none" } };
  await agent.apply([{ ...listed, record: { ...listed.record, type: "s7plus", readout_interval: interval, details } }]);
  const readouts = () => kept;
  const good = (many: number, from = 0) =>
    expect
      .poll(
        () =>
          readouts()
            .slice(from)
            .filter((readings) => readings.every((one) => one?.quality === "good")).length,
        { timeout: 10_000 },
      )
      .toBeGreaterThanOrEqual(many);
  return { readouts, good, report: () => report(1) };
}

const goodValue = (reading: Reading | undefined): Value | undefined => (reading?.quality === "good" ? reading.value : undefined);
const goodValues = (readouts: readonly (readonly (Reading | undefined)[])[], place: number): Set<Value | undefined> =>
  new Set(readouts.map((readings) => goodValue(readings[place])).filter((value) => value !== undefined));

describe("a download that renumbers", () => {
  it("gives no variable the value of another one as good, and says in that readout what happened", async () => {
    const plc = await plcWith({ program: { blocks: [blockOf(1), blockOf(2)] } });
    const { readouts, good } = await reading(plc, ["Block_1.a", "Block_2.b"]);
    await good(2);
    const before = readouts().length;
    plc.download(undefined, { ids: "turned" });
    await good(3, before);
    expect([goodValues(readouts(), 0), goodValues(readouts(), 1)]).toEqual([new Set([10]), new Set([20])]);
    expect(readouts().flat()).toContainEqual({
      quality: "bad",
      fault: "program_changed",
      detail: expect.stringMatching(/^the block Block_1 was changed in the PLC after its variables were looked up/),
    });
  });

  it("costs the variables of other blocks nothing", async () => {
    const plc = await plcWith({ program: { blocks: [blockOf(1), blockOf(2)] } });
    const { readouts, good } = await reading(plc, ["Block_1.a", "Block_2.b"]);
    await good(2);
    const before = readouts().length;
    plc.download(
      { blocks: [blockOf(1, [...NUMBERS].reverse()), plc.program.declaration.blocks?.[1] ?? blockOf(2)] },
      { onlyChanges: true },
    );
    await good(3, before);
    expect(goodValues(readouts(), 0)).toEqual(new Set([10]));
    expect(readouts().map((readings) => goodValue(readings[1]))).toEqual(readouts().map(() => 20));
    expect(readouts().filter(([first]) => first?.quality === "bad")).toHaveLength(1);
  });
});

it("a symbol that comes with another type than was looked up is looked up again at once, also a tag, which has no stamp", async () => {
  const M = [
    { name: "whole", type: "INT", value: 7 },
    { name: "real", type: "REAL", value: 2.5 },
  ];
  const plc = await plcWith({ program: { tags: { M } } });
  const { readouts, good } = await reading(plc, ["whole", "real"]);
  await good(2);
  const before = readouts().length;
  plc.download(undefined, { ids: "turned", keepsStamps: true });
  await good(4, before);
  expect([goodValues(readouts(), 0), goodValues(readouts(), 1)]).toEqual([new Set([7]), new Set([2.5])]);
});

it("a change that is found after values went out without a look says from when on which variables may have been another's", async () => {
  const plc = await plcWith({ program: { blocks: [blockOf(1)] } });
  // A look takes longer than a fifth of the interval.
  plc.misbehave = ({ name, object }) => (name === "explore" && object === 0x8a0e0001 ? { delayMs: 300 } : undefined);
  const { readouts, good, report } = await reading(plc, ["Block_1.a"], 200);
  await good(3);
  await expect
    .poll(() => textsOf(report()?.warnings), { timeout: 8000 })
    .toContainEqual(expect.stringMatching(/^the last whole look at whether .* ago/));
  plc.download(undefined, { ids: "turned" });
  const said = expect.stringMatching(
    /^the device got another program: from 20.* to 20.* the values of 1 variable \(v0\) may have been another/,
  );
  await expect.poll(() => textsOf(report()?.warnings), { timeout: 8000 }).toContainEqual(said);
  expect(readouts().flat()).toContainEqual({
    quality: "bad",
    fault: "program_changed",
    detail: expect.stringMatching(/from 20.* to 20.* the values of this variable may have been another variable's$/),
  });
});
