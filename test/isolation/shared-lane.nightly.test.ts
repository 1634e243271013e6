import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { Agent } from "../../src/agent/agent.ts";
import type { SourceInput } from "../../src/agent/source-spec.ts";
import { silentLog } from "../../src/model/context.ts";
import { startClock } from "../../src/os/clock.ts";
import { type DeadUnits, type Gateway, startGateway } from "./gateway.ts";
import { sourceOf } from "./rig.ts";

const UNITS = 30;
const DEAD = [1, 5, 10, 20] as const;
const KINDS: readonly DeadUnits[] = [
  "silent",
  "gateway exception",
  "silent, one request at a time",
  "gateway exception, one request at a time",
];
const SHAPES = ["a source each", "all in one source"] as const;
/** With the first look at each dead unit behind them. */
const SETTLE_MS = 60_000;
const MEASURE_MS = 40_000;
const LEAST_SHARE = 0.9;
const BACK_WITHIN_MS = 60_000;
const MARGIN = 3;
const DOC = path.resolve(import.meta.dirname, "../../docs/generated/isolation-shared.md");

interface Scenario {
  readonly dead: number;
  readonly kind: DeadUnits;
  readonly shape: (typeof SHAPES)[number];
  readonly intervalMs: number;
}

/** A gateway that serves one request at a time is the harder one: of the others one number of dead units is enough. */
const SCENARIOS: readonly Scenario[] = [1000, 10_000].flatMap((intervalMs) =>
  SHAPES.flatMap((shape) =>
    KINDS.flatMap((kind) =>
      DEAD.filter((dead) => dead === 10 || kind.endsWith("one request at a time")).map((dead) => ({ dead, kind, shape, intervalMs })),
    ),
  ),
);
const nameOf = ({ dead, kind, shape, intervalMs }: Scenario) => `${dead} of ${UNITS} dead, ${kind}, ${shape}, each ${intervalMs / 1000} s`;

/** Dead units are spread among the living. */
const isDead = (unit: number, dead: number): boolean => Math.floor((unit * dead) / UNITS) !== Math.floor(((unit - 1) * dead) / UNITS);
const unitsOf = (dead: number, wanted: boolean) =>
  Array.from({ length: UNITS }, (_, i) => i + 1).filter((unit) => isDead(unit, dead) === wanted);

function sourcesOf({ shape, intervalMs }: Scenario, port: number): readonly SourceInput[] {
  if (shape === "a source each")
    return Array.from({ length: UNITS }, (_, i) => ({
      ...sourceOf(`unit-${i + 1}`, "127.0.0.1", port, intervalMs),
      local: { unit: i + 1 },
    }));
  const one = sourceOf("all", "127.0.0.1", port, intervalMs);
  const [variable] = one.variables;
  if (!variable) throw new Error("a source of the rig has variables");
  const variables = Array.from({ length: UNITS }, (_, i) => ({
    ...variable,
    uuid: `${i}`,
    name: `u${i + 1}`,
    address: `${i + 1}/holding:0[20]`,
  }));
  return [{ ...one, variables }];
}

class Run {
  readonly scenario: Scenario;
  readonly gateway: Gateway;
  readonly #agent: Agent;
  /** Readouts of which the unit was good, by unit. */
  readonly good = new Map<number, number>();
  /** Healthy units that were ever said to fail while it was measured. */
  readonly accused = new Set<string>();
  isMeasuring = false;
  /** All units answer by now: those that were dead may be said to have failed until they are read. */
  #isBack = false;
  readonly #before = new Map<string, number>();

  private constructor(scenario: Scenario, gateway: Gateway, clock: ReturnType<typeof startClock>) {
    this.scenario = scenario;
    this.gateway = gateway;
    this.#agent = new Agent({
      drivers: { modbus_tcp: { driver: async () => ({ default: modbus }) } },
      clock,
      logFor: () => silentLog,
      emit: ({ source }, { readings }) => {
        if (!this.isMeasuring) return;
        if (source.name === "all") {
          for (const [i, reading] of readings.entries()) if (reading?.quality === "good") this.#count(i + 1);
        } else if (readings.every((reading) => reading?.quality === "good")) this.#count(Number(source.name.slice(5)));
      },
      changed: () => this.#accuse(),
    });
  }

  static async start(scenario: Scenario, clock: ReturnType<typeof startClock>): Promise<Run> {
    const gateway = await startGateway(scenario.kind);
    for (const unit of unitsOf(scenario.dead, true)) gateway.dead.add(unit);
    const run = new Run(scenario, gateway, clock);
    await run.#agent.apply(sourcesOf(scenario, gateway.port));
    return run;
  }

  #count(unit: number): void {
    this.good.set(unit, (this.good.get(unit) ?? 0) + 1);
  }

  #accuse(): void {
    if (!this.isMeasuring || this.#isBack) return;
    for (const { name, error } of this.#agent.reports())
      if (error !== null && (name === "all" || !this.gateway.dead.has(Number(name.slice(5)))))
        this.accused.add(`${name}: ${error.reason.type}`);
  }

  measure(): void {
    this.isMeasuring = true;
    for (const { name, counters } of this.#agent.reports()) this.#before.set(name, counters.readouts + counters.overruns);
  }

  /** The share of its readouts that the worst healthy unit got. */
  leastShare(): number {
    const wanted = new Map(
      this.#agent.reports().map(({ name, counters }) => [name, counters.readouts + counters.overruns - (this.#before.get(name) ?? 0)]),
    );
    const wantedOf = (unit: number) => wanted.get("all") ?? wanted.get(`unit-${unit}`) ?? 0;
    // A source that waits for its turn all the time has no readouts at all.
    const least = (unit: number) => (wantedOf(unit) === 0 ? 0 : (this.good.get(unit) ?? 0) / wantedOf(unit));
    return Math.min(...unitsOf(this.scenario.dead, false).map(least));
  }

  /** Healthy units that are not read, and what their sources say. */
  unread(): readonly string[] {
    return this.#agent
      .reports()
      .filter(({ name }) => name !== "all" && !this.gateway.dead.has(Number(name.slice(5))) && !this.good.has(Number(name.slice(5))))
      .map(
        ({ name, status, error, next_retry_at, counters }) =>
          `${name} ${status.state.type} ${error?.detail} ${next_retry_at} ${JSON.stringify(counters)}`,
      );
  }

  comeBack(): void {
    this.#isBack = true;
    this.gateway.dead.clear();
    this.good.clear();
    this.isMeasuring = true;
  }

  async stop(): Promise<void> {
    await this.#agent.stop();
    await this.gateway.close();
  }
}

describe("units behind one gateway that takes one connection", () => {
  const stop = new AbortController();
  const clock = startClock(stop.signal);
  const runs: Run[] = [];
  afterAll(async () => {
    stop.abort();
    await Promise.all(runs.map((run) => run.stop()));
  });

  /** The share of its readouts that the worst healthy unit got; all units are back and read again when it resolves. */
  async function play(scenarios: readonly Scenario[]): Promise<readonly number[]> {
    const batch = await Promise.all(scenarios.map((scenario) => Run.start(scenario, clock)));
    runs.push(...batch);
    await new Promise((done) => setTimeout(done, SETTLE_MS));
    for (const run of batch) run.measure();
    await new Promise((done) => setTimeout(done, MEASURE_MS));
    const shares = batch.map((run) => Math.min(1, run.leastShare()));
    for (const [i, run] of batch.entries()) {
      run.isMeasuring = false;
      console.log(
        `shared lane: ${nameOf(run.scenario)}: the worst healthy unit got ${Math.round((shares[i] ?? 0) * 100)} % of its readouts`,
      );
      for (const words of run.unread()) console.log(`shared lane: ${nameOf(run.scenario)}: not read: ${words}`);
    }
    const began = performance.now();
    for (const run of batch) run.comeBack();
    const missing = () => batch.filter((run) => run.good.size < UNITS).map(({ scenario }) => nameOf(scenario));
    await expect.poll(missing, { timeout: BACK_WITHIN_MS * MARGIN, interval: 250 }).toEqual([]);
    console.log(`shared lane: all units read again ${Math.round(performance.now() - began)} ms after they were back`);
    await Promise.all(batch.map((run) => run.stop()));
    return shares;
  }

  it("dead ones cost the others at most a tenth of their readouts and give them no reason, and are read soon when they are back", async () => {
    // Of a try before.
    await Promise.all(runs.splice(0).map((run) => run.stop()));
    const shares = await play(SCENARIOS);
    const rows = runs.map((run) => `| ${nameOf(run.scenario)} | ${[...run.accused].join(", ") || "none"} |`);
    await expect(
      `${[
        "# What dead units cost healthy ones behind one gateway",
        "",
        `Written by \`test/isolation\` from its run: ${UNITS} Modbus units behind a gateway that takes one connection, ${MEASURE_MS / 1000} s each. Every healthy unit has to get ${LEAST_SHARE * 100} % of its readouts; the test asserts it with a margin of ${MARGIN} (on a busy machine everything is late) and prints what each got.`,
        "",
        "| units | reasons that healthy ones were given |",
        "| --- | --- |",
        ...rows,
      ].join("\n")}\n`,
    ).toMatchFileSnapshot(DOC);
    const asserted = 1 - MARGIN * (1 - LEAST_SHARE);
    expect(runs.filter((_, i) => (shares[i] ?? 0) < asserted).map(({ scenario }) => nameOf(scenario))).toEqual([]);
    expect(runs.flatMap((run) => [...run.accused])).toEqual([]);
  }, 400_000);
});
