import { vi } from "vitest";
import type { AnyDriver, DriverContext } from "../../drivers/driver.ts";
import { Agent } from "../../src/agent/agent.ts";
import type { SourceInput } from "../../src/agent/source-spec.ts";
import { silentLog } from "../../src/model/context.ts";
import type { Kept } from "../../src/model/kept.ts";
import type { Layout } from "../../src/model/layout.ts";
import type { Readout } from "../../src/model/value.ts";
import { source, variable } from "../support/agent.ts";
import { DIALECTS, madeOf, Plant } from "./plant.ts";
import type { Play, SourcePlan, TroublePlan } from "./play.ts";

/** A readout of a source, as far as it is judged. */
export interface Brought {
  readonly atMs: number;
  /** Begun then. */
  readonly timeMs: number;
  readonly isWhole: boolean;
}

export interface Seen {
  /** By source. */
  readonly readouts: readonly (readonly Brought[])[];
  readonly values: number;
  /** Values of another place or device, from before a reboot, older than their readout; variables with neither a value nor a fault. */
  readonly wrong: readonly string[];
  /** Time that it was played. */
  readonly lastedMs: number;
}

const EPOCH_MS = 1_000_000_000_000;
const PORT = 5000;
const ANSWER_TIMEOUT_MS = 3000;
/** Turns of the event loop in which what follows from a timer is done. */
const TURNS = 2;
/** A step that spreads numbers evenly. */
const GOLDEN = 0.618_034;
const MAX_WRONG = 5;
/** All is well for so long at least in the end, and until each source is read as a whole. */
const LEAST_END_MS = 20_000;
const LOOK_EVERY_MS = 5000;

/** Everything that outlives a kill: files. */
class Files {
  readonly #values = new Map<string, Record<string, unknown>>();

  readonly of = (name: string): Kept => {
    const values = this.#values.get(name) ?? {};
    this.#values.set(name, values);
    return {
      values,
      set(key, value) {
        values[key] = value;
      },
    };
  };
}

/** Plays a play: the real agent, in a time of its own. Fake timers have to be in use, and setImmediate has to be the real one. */
export class Player {
  readonly #play: Play;
  readonly #plant: Plant;
  readonly #files = [new Files(), new Files()] as const;
  readonly #readouts: Brought[][];
  readonly #wrong: string[] = [];
  /** By source: what of its configuration is changed. */
  readonly #changes: ("interval changed" | "variables changed" | "source removed and back" | undefined)[];
  #values = 0;
  #agent: Agent;
  #life = 0;

  constructor(play: Play) {
    vi.setSystemTime(EPOCH_MS);
    let drawn = 0;
    // Pauses are spread at random: the same play comes out the same.
    vi.spyOn(Math, "random").mockImplementation(() => (drawn = (drawn + GOLDEN) % 1));
    this.#play = play;
    this.#plant = new Plant(play);
    this.#readouts = play.sources.map(() => []);
    this.#changes = play.sources.map(() => undefined);
    this.#agent = this.#born();
  }

  async run(): Promise<Seen> {
    await this.#agent.apply(this.#inputs());
    const events = this.#play.troubles
      .flatMap((trouble) => [
        { atMs: trouble.fromMs, trouble, begins: true },
        { atMs: trouble.untilMs, trouble, begins: false },
      ])
      .sort((a, b) => a.atMs - b.atMs);
    for (const { atMs, trouble, begins } of events) {
      await this.#pass(EPOCH_MS + atMs - Date.now());
      await this.#turn(trouble, begins);
    }
    const { lengthMs } = this.#play;
    const endedMs = Date.now() - EPOCH_MS;
    await this.#pass(LEAST_END_MS);
    while (!this.#isWell(endedMs) && Date.now() < EPOCH_MS + lengthMs) await this.#pass(LOOK_EVERY_MS);
    const lastedMs = Date.now() - EPOCH_MS;
    await this.#stop();
    return { readouts: this.#readouts, values: this.#values, wrong: this.#wrong, lastedMs };
  }

  /** True: each source was read as a whole since. */
  #isWell(sinceMs: number): boolean {
    return this.#readouts.every((readouts) => readouts.some(({ isWhole, timeMs }) => isWhole && timeMs >= sinceMs));
  }

  async #turn(trouble: TroublePlan, begins: boolean): Promise<void> {
    const { kind, source: n } = trouble;
    if (kind === "kill") {
      if (!begins) return;
      // Whatever the killed one still does comes to nothing.
      this.#life++;
      this.#agent = this.#born();
      await this.#agent.apply(this.#inputs());
    } else if (kind === "clock jumps") {
      if (begins) vi.setSystemTime(Date.now() + 3000);
    } else if (kind === "interval changed" || kind === "variables changed" || kind === "source removed and back") {
      this.#changes[n] = begins ? kind : undefined;
      await this.#agent.apply(this.#inputs());
    } else if (begins) this.#plant.begin(trouble);
    else this.#plant.end(trouble);
  }

  #born(): Agent {
    const life = this.#life;
    const isGone = () => life !== this.#life;
    const modelled = Object.entries(DIALECTS).map(([type, { driver }]) => {
      const connect = ({ details }: { readonly details: { readonly port: number } }, ctx: DriverContext) =>
        this.#plant.connect(details.port - PORT, ctx, isGone);
      const model = { ...driver, load: () => undefined, connect } as unknown as AnyDriver;
      return [type, { driver: async () => ({ default: model }) }];
    });
    return new Agent({
      drivers: Object.fromEntries(modelled),
      clock: { monotonicMs: () => Date.now(), epochMs: () => Date.now(), synced: () => true, bootedAtMs: () => 0 },
      logFor: () => silentLog,
      keptOf: this.#files[0].of,
      habitsOf: this.#files[1].of,
      emit: (layout, readout) => {
        if (!isGone()) this.#take(layout, readout);
      },
      changed() {},
    });
  }

  #inputs(): readonly SourceInput[] {
    return this.#play.sources.flatMap((plan, n) => (this.#changes[n] === "source removed and back" ? [] : [this.#inputOf(plan, n)]));
  }

  #inputOf({ device, unit, places, intervalMs }: SourcePlan, n: number): SourceInput {
    const plan = this.#play.devices[device];
    if (!plan) throw new Error(`there is no device ${device}`);
    const { type, keepsConnection } = plan;
    const wanted = this.#changes[n] === "variables changed" ? places.slice(1) : places;
    const variables = wanted.map((place, i) => variable(n + 1, i, DIALECTS[type].addressOf(unit, place), { type: "uint16" }));
    const input = source(n + 1, PORT + device, { variables, local: { connect_timeout: "1s", answer_timeout: `${ANSWER_TIMEOUT_MS}ms` } });
    const at = { type, host: "127.0.0.1", port: PORT + device };
    const details = type === "s7" ? { ...at, slot: 1 } : { ...at, ephemeral_connections: !keepsConnection };
    const readoutInterval = this.#changes[n] === "interval changed" ? 2 * intervalMs : intervalMs;
    return { ...input, record: { ...input.record, type, readout_interval: readoutInterval, details } };
  }

  #take(layout: Layout, { readings, time }: Readout): void {
    const n = Number(layout.source.name.split("-")[1]) - 1;
    const plan = this.#play.sources[n];
    const type = plan && this.#play.devices[plan.device]?.type;
    if (!plan || !type) return;
    let isWhole = true;
    for (const [i, { address }] of layout.variables.entries()) {
      const reading = readings[i];
      if (reading?.quality !== "good") isWhole = false;
      if (!reading) this.#note(`source ${n}, ${address}: neither a value nor a fault`);
      if (reading?.quality !== "good") continue;
      this.#values++;
      const { device, unit, place, boot, atMs } = madeOf(String(reading.value));
      const isOwn = device === plan.device && DIALECTS[type].addressOf(unit, place) === address;
      if (!isOwn) this.#note(`source ${n}, ${address}: the value ${reading.value} is another's`);
      if (atMs < time) this.#note(`source ${n}, ${address}: the value ${reading.value} is older than its readout of ${time}`);
      if (boot !== this.#plant.boots[device] && time > atMs) this.#note(`source ${n}, ${address}: from before a reboot`);
    }
    this.#readouts[n]?.push({ atMs: Date.now() - EPOCH_MS, timeMs: time - EPOCH_MS, isWhole });
  }

  #note(words: string): void {
    if (this.#wrong.length < MAX_WRONG) this.#wrong.push(words);
  }

  async #pass(ms: number): Promise<void> {
    if (ms <= 0) return;
    let isOver = false;
    const end = setTimeout(() => {
      isOver = true;
    }, ms);
    while (!isOver) {
      vi.advanceTimersToNextTimer();
      for (let turn = 0; turn < TURNS; turn++) await new Promise((done) => setImmediate(done));
    }
    clearTimeout(end);
  }

  async #stop(): Promise<void> {
    let hasStopped = false;
    const stopping = this.#agent.stop().then(() => {
      hasStopped = true;
    });
    for (let i = 0; i < 200 && !hasStopped; i++) await this.#pass(100);
    if (!hasStopped) this.#note("the agent did not stop within 20 s");
    else await stopping;
    vi.clearAllTimers();
  }
}
