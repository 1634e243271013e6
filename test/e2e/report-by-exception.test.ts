import { afterEach, expect, it } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { addModbusSource, apiOf } from "../support/api.ts";
import { startBroker } from "../support/broker.ts";
import { startBuiltCollector } from "../support/built-collector.ts";

const VARIABLES = 10;
/** Interval of the source, and readouts that are looked at. */
const EVERY_S = 1;
const LOOKED_AT = 12;
const poll = <T>(look: () => T) => expect.poll(look, { timeout: 60_000, interval: 50 });

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

interface Readout {
  readonly ts: string;
  readonly values: Readonly<Record<string, number>>;
  readonly unchanged?: number;
  readonly errors?: object;
}

it("sends changes alone: what a reader holds is what the device has, at each readout, and the account is exact", async () => {
  // One register counts each second, one drifts by less than its deadband, the others stand still; later one of them changes.
  let late = 7;
  const holding = new Map<number, (ms: number) => number>(Array.from({ length: VARIABLES }, (_, i) => [i, () => i]));
  holding.set(0, () => Math.floor(Date.now() / 1000) & 0xffff);
  holding.set(1, (ms) => 1000 + (Math.floor(ms / 1000) % 3));
  holding.set(7, () => late);
  const plant = await startModbusPlant({ units: new Map([[1, { holding }]]) });
  open.push(plant.close);
  const broker = await startBroker();
  open.push(() => broker.stop());
  const settings = {
    sources: { "press-1": { report: "changes", heartbeat: "8s", key_readouts: "1h", report_variables: { v1: { deadband: 2 } } } },
  };
  const collector = await startBuiltCollector({ settings });
  open.push(() => collector.stop());
  const api = apiOf(collector.apiUrl, await collector.adminKey());
  const { collector: uuid } = await collector.status();
  const details = { type: "mqtt", host: "127.0.0.1", port: broker.port, topic: "plant/{source}" };
  await api.post("/v2/data-sinks", { name: "broker", collector: uuid, details });
  // No account has values that are read before there is a sink.
  await poll(async () => (await collector.status()).sinks[0]?.state).toBe("OK");
  const variables = Object.fromEntries(Array.from({ length: VARIABLES }, (_, i) => [`v${i}`, `holding:${i}`]));
  await addModbusSource(api, uuid, { name: "press-1", port: plant.port, readout_interval: EVERY_S, variables });
  const all = (): readonly Readout[] =>
    broker.received
      .filter(({ topic }) => topic === "plant/press-1")
      .flatMap(({ payload }) => (JSON.parse(payload) as { readouts: Readout[] }).readouts);
  // The source is read while its variables are still being added; with each it counts from zero again.
  const wholeFrom = (): number => all().findIndex(({ values }) => Object.keys(values).length === VARIABLES);
  const readouts = (): readonly Readout[] => (wholeFrom() < 0 ? [] : all().slice(wholeFrom()));
  const readBefore = (): number =>
    all()
      .slice(0, wholeFrom())
      .reduce((sum, { values, unchanged = 0 }) => sum + Object.keys(values).length + unchanged, 0);
  await poll(() => readouts().length).toBeGreaterThanOrEqual(LOOKED_AT / 2);
  late = 70;
  await poll(() => readouts().length).toBeGreaterThanOrEqual(LOOKED_AT);

  const held = new Map<string, { readonly value: number; readonly atMs: number }>();
  const changed = new Map<string, number>();
  for (const [n, { ts, values, unchanged = 0, errors }] of readouts().entries()) {
    const atMs = Date.parse(ts);
    for (const [name, value] of Object.entries(values)) {
      held.set(name, { value, atMs });
      changed.set(name, (changed.get(name) ?? 0) + 1);
    }
    expect(errors).toBeUndefined();
    expect(Object.keys(values).length + unchanged).toBe(VARIABLES);
    if (n === 0) expect(Object.keys(values)).toHaveLength(VARIABLES);
    expect(Math.abs((held.get("v0")?.value ?? Number.NaN) - (Math.floor(atMs / 1000) & 0xffff))).toBeLessThanOrEqual(1);
    for (let i = 2; i < VARIABLES; i++) if (i !== 7) expect(held.get(`v${i}`)?.value).toBe(i);
    // A heartbeat, and the interval in which it comes due; a machine under load reads late.
    for (const one of held.values()) expect(atMs - one.atMs).toBeLessThanOrEqual((8 + 2 * EVERY_S) * 1000 * 3);
  }
  expect(held.get("v7")?.value).toBe(70);
  expect(changed.get("v0")).toBeGreaterThan(LOOKED_AT / 2);
  expect(changed.get("v1")).toBeLessThan(LOOKED_AT / 2);
  expect(changed.get("v2")).toBeLessThan(LOOKED_AT / 2);
  expect(changed.get("v2")).toBeGreaterThan(1);

  // The account is told each second: where that falls between a readout and its commit, it lacks what the readout reports.
  const stopped = Math.floor(Date.now() / 1000) & 0xffff;
  holding.set(0, () => stopped);
  await poll(async () => {
    const { sources, sinks, buffer } = await collector.status();
    const [counters, ledger] = [sources[0]?.counters, sinks[0]?.ledger];
    return readBefore() + (counters?.values_read ?? 0) - (ledger?.accepted ?? 0) - (buffer.suppressed ?? 0);
  }).toBe(0);
  const { buffer } = await collector.status();
  expect(buffer.suppressed).toBeGreaterThan(0.5 * VARIABLES * LOOKED_AT);

  // A sink that is new knows nothing of what was reported: the next readout has all values.
  await api.post("/v2/data-sinks", { name: "second", collector: uuid, details: { ...details, topic: "second/{source}" } });
  const first = () => broker.received.find(({ topic }) => topic === "second/press-1");
  await poll(first).toBeDefined();
  const [whole] = (JSON.parse(first()?.payload ?? "{}") as { readouts: Readout[] }).readouts;
  expect(Object.keys(whole?.values ?? {})).toHaveLength(VARIABLES);

  // A change that comes while the broker is away is among the older values: the newer ones do not refer to it.
  await broker.stop();
  late = 700;
  await new Promise((done) => setTimeout(done, 4000));
  const back = await startBroker({ port: broker.port });
  open.push(() => back.stop());
  const newer = () =>
    back.received
      .filter(({ topic }) => topic === "plant/press-1")
      .map(({ payload }) => JSON.parse(payload) as { backlog?: boolean; readouts: Readout[] })
      .filter(({ backlog = false }) => !backlog)
      .flatMap(({ readouts: some }) => some);
  await poll(() => newer().some(({ values }) => Object.keys(values).length === VARIABLES && values["v7"] === 700)).toBe(true);
}, 180_000);
