import { randomUUID } from "node:crypto";
import { DRIVERS } from "../../drivers/index.ts";
import { type ItemRequest, type ReadJob, S7Memory, type S7Plc, startS7Plc } from "../../drivers/s7/simulator.ts";
import { Agent } from "../../src/agent/agent.ts";
import type { SourceInput } from "../../src/agent/source-spec.ts";
import { silentLog } from "../../src/model/context.ts";
import type { SourceReport } from "../../src/model/report.ts";
import type { Readout } from "../../src/model/value.ts";
import { startClock } from "../../src/os/clock.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";

/** Words that follow each other, and bytes from one run of them to the next: more than a range may bridge. */
const RUN_WORDS = 4;
const RUN_BYTES = 100;

/** Where variable `i` is in DB1. */
export const byteOf = (i: number): number => Math.floor(i / RUN_WORDS) * RUN_BYTES + (i % RUN_WORDS) * 2;
/** Variables of the range that holds variable `i`, whether it is asked for whole. */
export const holds = ({ start, count }: ItemRequest, i: number): boolean => start <= byteOf(i) && byteOf(i) + 2 <= start + count;

/** What one readout brought, and what it asked for. */
export interface Seen {
  /** Counts those that failed too. */
  readonly number: number;
  readonly good: number;
  readonly readout: Readout;
  /** That came to the controller since the readout before. */
  readonly jobs: number;
}

export interface S7PlantOptions {
  readonly variables: number;
  readonly intervalMs: number;
  readonly local?: Readonly<Record<string, unknown>>;
  /** Before the source is started. */
  readonly before?: (plc: S7Plc) => void;
}

/** A real agent that reads words of a controller, over a proxy. */
export class S7Plant {
  readonly plc: S7Plc;
  readonly proxy: FaultProxy;
  readonly seen: Seen[] = [];
  /** Lines of the log at `warn` and above. */
  readonly lines: string[] = [];
  /** What the controller does with jobs, by name; the first that says something counts. */
  readonly odd = new Map<string, (job: ReadJob) => ReturnType<NonNullable<S7Plc["misbehave"]>>>();
  /** Codes of items that are refused, by name. */
  readonly refusals = new Map<string, (item: ItemRequest) => number | undefined>();
  readonly #variables: number;
  readonly #stop = new AbortController();
  readonly #agent: Agent;
  #jobs = 0;

  private constructor(plc: S7Plc, proxy: FaultProxy, variables: number) {
    this.plc = plc;
    this.proxy = proxy;
    this.#variables = variables;
    const take = (_: object, message: string) => void this.lines.push(message);
    this.#agent = new Agent({
      drivers: DRIVERS,
      clock: startClock(this.#stop.signal),
      logFor: () => ({ ...silentLog, warn: take, error: take }),
      emit: (_, readout) => this.#take(readout),
      changed() {},
    });
    plc.misbehave = (job) => first(this.odd.values(), job);
    plc.memory.refuse = (item) => first(this.refusals.values(), item);
  }

  static async start({ variables, intervalMs, local = {}, before }: S7PlantOptions): Promise<S7Plant> {
    const memory = new S7Memory();
    memory.create("DB1", byteOf(variables) + RUN_BYTES);
    for (let i = 0; i < variables; i++) memory.put("DB1", byteOf(i), "WORD", i);
    const plc = await startS7Plc({ memory });
    plc.pduBytes = 240;
    before?.(plc);
    const proxy = await startFaultProxy(plc.port);
    const plant = new S7Plant(plc, proxy, variables);
    await plant.#agent.apply([sourceOf(variables, proxy.port, intervalMs, local)]);
    return plant;
  }

  #take(readout: Readout): void {
    const { jobs } = this.plc.counts;
    const good = readout.readings.filter((reading, i) => reading?.quality === "good" && reading.value === i).length;
    this.seen.push({ number: this.report().counters.readouts, good, readout, jobs: jobs - this.#jobs });
    this.#jobs = jobs;
  }

  report(): SourceReport {
    const [report] = this.#agent.reports();
    if (!report) throw new Error("the agent has no source");
    return report;
  }

  get last(): Seen | undefined {
    return this.seen.at(-1);
  }

  isWhole(): boolean {
    return this.last?.good === this.#variables;
  }

  /** How many readouts it takes from now on until every value is good, with those that fail. */
  async readoutsUntilWhole(timeoutMs = 30_000): Promise<number> {
    const from = this.report().counters.readouts;
    const wholeSince = () => this.seen.find(({ number, good }) => number > from && good === this.#variables);
    await this.until(() => wholeSince() !== undefined, timeoutMs);
    return (wholeSince()?.number ?? from) - from;
  }

  async readouts(count: number, timeoutMs = 30_000): Promise<readonly Seen[]> {
    const from = this.seen.length;
    await this.until(() => this.seen.length >= from + count, timeoutMs);
    return this.seen.slice(from, from + count);
  }

  async until(isSo: () => boolean, timeoutMs = 30_000): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!isSo()) {
      if (performance.now() > deadline) throw new Error(`it has not come to that within ${timeoutMs} ms: ${this.words()}`);
      await new Promise((done) => setTimeout(done, 10));
    }
  }

  /** For messages. */
  words(): string {
    const { status, error, warnings, counters } = this.report();
    const asked = this.seen.slice(-4).map(({ good, jobs }) => `${good} good with ${jobs} jobs`);
    return JSON.stringify({ state: status.state.type, error: error?.detail, warnings, counters, asked });
  }

  async stop(): Promise<void> {
    await this.#agent.stop();
    this.#stop.abort();
    await this.proxy.close();
    await this.plc.close();
  }
}

function first<T, R>(all: Iterable<(one: T) => R | undefined>, one: T): R | undefined {
  for (const ask of all) {
    const answer = ask(one);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

function sourceOf(variables: number, port: number, intervalMs: number, local: Readonly<Record<string, unknown>>): SourceInput {
  const uuid = randomUUID();
  return {
    record: {
      uuid,
      type: "s7",
      name: "plc",
      collector: uuid,
      machine: uuid,
      manufacturer: null,
      device_model: null,
      note: null,
      readout_interval: intervalMs,
      readout_limit: null,
      details: { type: "s7", host: "127.0.0.1", port, rack: 0, slot: 1 },
    },
    variables: Array.from({ length: variables }, (_, i) => ({
      uuid: randomUUID(),
      data_source: uuid,
      name: `v${i}`,
      address: `DB1.DBW${byteOf(i)}`,
      type: "WORD",
      unit: null,
      scaling: null,
      comment: null,
      status: "ACTIVE" as const,
    })),
    warnings: [],
    local: { answer_timeout: "300ms", ...local },
    secrets: {},
    missingSecret: undefined,
    readoutIntervalUnit: "milliseconds",
  };
}
