import { afterAll, describe, expect, it } from "vitest";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { Agent } from "../../src/agent/agent.ts";
import type { SourceInput } from "../../src/agent/source-spec.ts";
import { silentLog } from "../../src/model/context.ts";
import { startClock } from "../../src/os/clock.ts";
import { type DeadUnits, type Gateway, startGateway } from "./gateway.ts";
import { sourceOf } from "./rig.ts";

const INTERVAL_MS = 1000;
const WELL_MS = 8000;
const LOOK_MS = 40_000;
const MARGIN = 3;
const SEGMENTS = [
  { units: 8, dead: [3], least: 0.95 },
  { units: 8, dead: [3, 6], least: 0.9 },
  { units: 13, dead: [2, 4, 7, 8, 12], least: 0.8 },
] as const;
const KINDS: readonly DeadUnits[] = ["silent", "silent, one request at a time", "gateway exception, one request at a time"];
const REQUESTS = [1, 4] as const;

interface Scenario {
  readonly segment: (typeof SEGMENTS)[number];
  readonly kind: DeadUnits;
  readonly requests: number;
}

const nameOf = ({ segment, kind, requests }: Scenario) =>
  `${segment.dead.length} of ${segment.units} at once, ${kind}, ${requests} requests each`;

/** One unit, with so many variables that need a request each. */
function unitSource(unit: number, port: number, requests: number): SourceInput {
  const one = sourceOf(`unit-${unit}`, "127.0.0.1", port, INTERVAL_MS);
  const [variable] = one.variables;
  if (!variable) throw new Error("a source of the rig has variables");
  const variables = Array.from({ length: requests }, (_, i) => ({
    ...variable,
    uuid: `${i}`,
    name: `v${i}`,
    address: `${unit}/holding:${1000 * i}`,
  }));
  return { ...one, variables };
}

class Play {
  readonly scenario: Scenario;
  readonly gateway: Gateway;
  readonly #agent: Agent;
  /** Whole readouts by unit, since the units went silent. */
  readonly #good = new Map<number, number>();
  readonly #lastMs = new Map<number, number>();
  gapMs = 0;
  #isLooking = false;

  private constructor(scenario: Scenario, gateway: Gateway, clock: ReturnType<typeof startClock>) {
    this.scenario = scenario;
    this.gateway = gateway;
    this.#agent = new Agent({
      drivers: { modbus_tcp: { driver: async () => ({ default: modbus }) } },
      clock,
      logFor: () => silentLog,
      emit: ({ source }, { readings }) =>
        this.#take(
          Number(source.name.slice(5)),
          readings.every((reading) => reading?.quality === "good"),
        ),
      changed() {},
    });
  }

  static async start(scenario: Scenario, clock: ReturnType<typeof startClock>): Promise<Play> {
    const gateway = await startGateway(scenario.kind);
    const play = new Play(scenario, gateway, clock);
    const units = Array.from({ length: scenario.segment.units }, (_, i) => i + 1);
    await play.#agent.apply(units.map((unit) => unitSource(unit, gateway.port, scenario.requests)));
    return play;
  }

  #take(unit: number, isWhole: boolean): void {
    if (!isWhole) return;
    const nowMs = performance.now();
    const before = this.#lastMs.get(unit);
    this.#lastMs.set(unit, nowMs);
    if (!this.#isLooking) return;
    this.#good.set(unit, (this.#good.get(unit) ?? 0) + 1);
    if (before !== undefined && !this.gateway.dead.has(unit)) this.gapMs = Math.max(this.gapMs, nowMs - before);
  }

  begin(): void {
    for (const unit of this.scenario.segment.dead) this.gateway.dead.add(unit);
    this.#isLooking = true;
  }

  /** The share of its readouts that the worst healthy unit got. */
  get share(): number {
    const healthy = Array.from({ length: this.scenario.segment.units }, (_, i) => i + 1).filter((unit) => !this.gateway.dead.has(unit));
    return Math.min(...healthy.map((unit) => ((this.#good.get(unit) ?? 0) * INTERVAL_MS) / LOOK_MS));
  }

  async stop(): Promise<void> {
    await this.#agent.stop();
    await this.gateway.close();
  }
}

describe("units behind one gateway that go silent while they are read", () => {
  const stop = new AbortController();
  const plays: Play[] = [];
  afterAll(async () => {
    stop.abort();
    await Promise.all(plays.map((play) => play.stop()));
  });

  it("leave their siblings nearly all of their readouts from the first lost request on", { timeout: 200_000 }, async () => {
    await Promise.all(plays.splice(0).map((play) => play.stop()));
    const clock = startClock(stop.signal);
    const scenarios = SEGMENTS.flatMap((segment) => KINDS.flatMap((kind) => REQUESTS.map((requests) => ({ segment, kind, requests }))));
    plays.push(...(await Promise.all(scenarios.map((scenario) => Play.start(scenario, clock)))));
    await new Promise((done) => setTimeout(done, WELL_MS));
    for (const play of plays) play.begin();
    await new Promise((done) => setTimeout(done, LOOK_MS));
    const poor: string[] = [];
    for (const { scenario, share, gapMs } of plays) {
      const words = `${nameOf(scenario)}: the worst healthy unit got ${Math.round(share * 100)} %, the longest gap was ${(gapMs / 1000).toFixed(1)} s`;
      console.log(`onset: ${words}`);
      if (share < 1 - MARGIN * (1 - scenario.segment.least)) poor.push(words);
    }
    expect(poor).toEqual([]);
  });
});
