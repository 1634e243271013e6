import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Misbehaviour, PlantRequest } from "../../drivers/modbus_tcp/simulator.ts";
import { plant, running, source, variable } from "../support/agent.ts";

const REGISTERS = 500;
const INTERVAL_MS = 1000;
/** Requests for searching, probing and joining in one readout. */
const EXTRAS = 20;
const HEALED_WITHIN_READOUTS = 3;
const MARGIN = 3;

const KINDS: readonly Misbehaviour[] = [
  { exception: 2 },
  { exception: 4 },
  { exception: 11 },
  { silent: true },
  { hangUp: "fin" },
  { hangUp: "rst" },
  { bytes: Buffer.from("garbage, garbage, garbage") },
];
const culprit = fc.tuple(fc.nat(REGISTERS - 1), fc.constantFrom(...KINDS));
const scenario = fc.record({
  culprits: fc.array(culprit, { minLength: 1, maxLength: 4 }),
  /** What the device does to everything, for a while before. */
  spell: fc.option(
    fc.constantFrom<Misbehaviour>({ exception: 4 }, { exception: 2 }, { exception: 6 }, { silent: true }, { hangUp: "rst" }),
    { nil: undefined },
  ),
});
type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

const silent: Misbehaviour = { silent: true };
/** What once went wrong. */
const NAMED: readonly Scenario[] = [
  // Asking each of them once more took all the time there is for searching, in each readout, and none was ever found.
  { culprits: [8, 345, 160].map((at) => [at, silent]), spell: { exception: 4 } },
  { culprits: [493, 3].map((at) => [at, silent]), spell: { exception: 2 } },
];

const later = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** One device with `scenario`, over real sockets: a spell, culprits, then all well again. Rejects with what is not as it should be. */
async function play({ culprits, spell }: Scenario): Promise<void> {
  const holding = new Map(Array.from({ length: REGISTERS }, (_, i) => [i, i] as const));
  let everything: Misbehaviour | undefined;
  const bad = new Map<number, Misbehaviour>();
  const asked: PlantRequest[] = [];
  const device = await plant({
    units: new Map([[1, { holding }]]),
    misbehave(request) {
      asked.push(request);
      if (everything) return everything;
      for (let at = request.start; at < request.start + request.count; at++) if (bad.has(at)) return bad.get(at);
      return undefined;
    },
  });
  const { agent, of, report } = running();
  const variables = Array.from({ length: REGISTERS }, (_, i) => variable(1, i, `holding:${i}`));
  const input = source(1, device.port, { variables, local: { connect_timeout: "1s", answer_timeout: "300ms" } });
  await agent.apply([{ ...input, record: { ...input.record, readout_interval: INTERVAL_MS } }]);
  const last = () => of("machine-1").at(-1)?.readout.readings ?? [];
  const good = () => last().filter((reading) => reading?.quality === "good").length;
  const readouts = () => report(1)?.counters.readouts ?? 0;
  await expect.poll(good, { timeout: 10_000 }).toBe(REGISTERS);
  const fresh = Math.ceil(REGISTERS / 125);

  everything = spell;
  if (spell) await later(3 * INTERVAL_MS);
  for (const [at, kind] of culprits) bad.set(at, kind);
  everything = undefined;
  const innocent = REGISTERS - bad.size;
  await expect.poll(good, { timeout: 20 * INTERVAL_MS }).toBe(innocent);
  for (const [index, reading] of last().entries()) if (bad.has(index)) expect(reading?.quality).toBe("bad");
  expect(report(1)?.status.state).toEqual({ type: "OK" });
  const [before, requests] = [readouts(), asked.length];
  await expect.poll(readouts, { timeout: 20 * INTERVAL_MS }).toBeGreaterThanOrEqual(before + 2);
  expect((asked.length - requests) / (readouts() - before)).toBeLessThanOrEqual(fresh + EXTRAS);

  bad.clear();
  const healing = readouts();
  await expect.poll(good, { timeout: 30 * INTERVAL_MS }).toBe(REGISTERS);
  expect(readouts() - healing).toBeLessThanOrEqual(HEALED_WITHIN_READOUTS * MARGIN);
  // As a fresh start would plan it.
  await expect
    .poll(
      async () => {
        const from = readouts();
        await expect.poll(readouts).toBeGreaterThan(from);
        const [at, count] = [readouts(), asked.length];
        await expect.poll(readouts).toBe(at + 1);
        return asked.length - count;
      },
      { timeout: 30 * INTERVAL_MS },
    )
    .toBe(fresh);
  await agent.stop();
}

describe("several faults at once on one device, over real sockets", () => {
  it("cost what they touch and nothing else, and leave nothing behind", async () => {
    const runs = [...NAMED, ...fc.sample(scenario, 24)];
    const outcomes = await Promise.allSettled(runs.map(play));
    const failed = outcomes.flatMap((outcome, i) =>
      outcome.status === "rejected" ? [{ scenario: JSON.stringify(runs[i]), why: String(outcome.reason) }] : [],
    );
    expect(failed).toEqual([]);
  }, 180_000);
});
