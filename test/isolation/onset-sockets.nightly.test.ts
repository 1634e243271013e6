import { afterAll, describe, expect, it } from "vitest";
import { DRIVERS } from "../../drivers/index.ts";
import { Agent } from "../../src/agent/agent.ts";
import { silentLog } from "../../src/model/context.ts";
import { startClock } from "../../src/os/clock.ts";
import type { DeadUnits } from "./gateway.ts";
import { cipSite, finsSite, modbusSite, type Site, type SiteOptions } from "./onset-sites.ts";

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

interface Scenario {
  readonly segment: (typeof SEGMENTS)[number];
  readonly name: string;
  readonly start: (options: SiteOptions) => Promise<Site>;
  readonly requests: number;
}

const SCENARIOS: readonly Scenario[] = SEGMENTS.flatMap((segment) => [
  ...KINDS.flatMap((kind) =>
    [1, 4].map((requests) => ({ segment, name: `Modbus, ${kind}`, requests, start: (options: SiteOptions) => modbusSite(kind, options) })),
  ),
  { segment, name: "FINS nodes of a network", requests: 1, start: finsSite },
  { segment, name: "CIP slots of a chassis", requests: 1, start: cipSite },
]);

const nameOf = ({ segment, name, requests }: Scenario) =>
  `${segment.dead.length} of ${segment.units} at once, ${name}, ${requests} requests each`;

class Play {
  readonly scenario: Scenario;
  readonly site: Site;
  readonly #agent: Agent;
  /** Whole readouts by unit, since the units went silent. */
  readonly #good = new Map<number, number>();
  readonly #lastMs = new Map<number, number>();
  gapMs = 0;
  #isLooking = false;

  private constructor(scenario: Scenario, site: Site, clock: ReturnType<typeof startClock>) {
    this.scenario = scenario;
    this.site = site;
    this.#agent = new Agent({
      drivers: DRIVERS,
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
    const { segment, requests } = scenario;
    const site = await scenario.start({ units: segment.units, intervalMs: INTERVAL_MS, requests });
    const play = new Play(scenario, site, clock);
    await play.#agent.apply(site.sources);
    return play;
  }

  #isDead(unit: number): boolean {
    return (this.scenario.segment.dead as readonly number[]).includes(unit);
  }

  #take(unit: number, isWhole: boolean): void {
    if (!isWhole) return;
    const nowMs = performance.now();
    const before = this.#lastMs.get(unit);
    this.#lastMs.set(unit, nowMs);
    if (!this.#isLooking) return;
    this.#good.set(unit, (this.#good.get(unit) ?? 0) + 1);
    if (before !== undefined && !this.#isDead(unit)) this.gapMs = Math.max(this.gapMs, nowMs - before);
  }

  begin(): void {
    for (const unit of this.scenario.segment.dead) this.site.kill(unit);
    this.#isLooking = true;
  }

  /** The share of its readouts that the worst healthy unit got. */
  get share(): number {
    const healthy = Array.from({ length: this.scenario.segment.units }, (_, i) => i + 1).filter((unit) => !this.#isDead(unit));
    return Math.min(...healthy.map((unit) => ((this.#good.get(unit) ?? 0) * INTERVAL_MS) / LOOK_MS));
  }

  async stop(): Promise<void> {
    await this.#agent.stop();
    await this.site.close();
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
    plays.push(...(await Promise.all(SCENARIOS.map((scenario) => Play.start(scenario, clock)))));
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
