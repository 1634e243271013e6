import type { DriverEntry } from "../../drivers/driver.ts";
import { Agent } from "../../src/agent/agent.ts";
import type { SourceInput } from "../../src/agent/source-spec.ts";
import { silentLog } from "../../src/model/context.ts";
import type { SourceReport } from "../../src/model/report.ts";
import type { Readout, Value } from "../../src/model/value.ts";
import { startClock } from "../../src/os/clock.ts";
import { source, variable } from "../support/agent.ts";

/** What one readout brought, and what it asked for. */
export interface Seen<Asked> {
  /** Counts those that failed too. */
  readonly number: number;
  readonly good: number;
  /** Good by their quality, but not the values that a right driver reads. Counted at once: drivers reuse the objects. */
  readonly wrong: number;
  readonly readout: Readout;
  /** What came to the device since the readout before. */
  readonly asked: Asked;
}

/** A real agent with one source, and everything that it has read. A kind of device says what is right, and what it was asked for. */
export abstract class WatchedAgent<Asked> {
  readonly seen: Seen<Asked>[] = [];
  /** Lines of the log at `warn` and above. */
  readonly lines: string[] = [];
  readonly #variables: number;
  readonly #stop = new AbortController();
  readonly #agent: Agent;

  protected constructor(drivers: Readonly<Record<string, DriverEntry>>, variables: number) {
    this.#variables = variables;
    const take = (_: object, message: string) => void this.lines.push(message);
    this.#agent = new Agent({
      drivers,
      clock: startClock(this.#stop.signal),
      logFor: () => ({ ...silentLog, warn: take, error: take }),
      emit: (_, readout) => this.#take(readout),
      changed() {},
    });
  }

  /** What a right driver reads. */
  abstract valueOf(i: number): Value;
  /** What came to the device since the last call. */
  protected abstract takeAsked(): Asked;
  /** For messages. */
  protected abstract wordsOf(asked: Asked): string;

  protected async read(source: SourceInput): Promise<void> {
    await this.#agent.apply([source]);
  }

  #take(readout: Readout): void {
    const read = readout.readings.filter((reading) => reading?.quality === "good").length;
    const good = readout.readings.filter((reading, i) => reading?.quality === "good" && reading.value === this.valueOf(i)).length;
    this.seen.push({ number: this.report().counters.readouts, good, wrong: read - good, readout, asked: this.takeAsked() });
  }

  report(): SourceReport {
    const [report] = this.#agent.reports();
    if (!report) throw new Error("the agent has no source");
    return report;
  }

  get last(): Seen<Asked> | undefined {
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

  async readouts(count: number, timeoutMs = 30_000): Promise<readonly Seen<Asked>[]> {
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
    const asked = this.seen.slice(-4).map((one) => `${one.good} good with ${this.wordsOf(one.asked)}`);
    return JSON.stringify({ state: status.state.type, error: error?.detail, warnings, counters, asked });
  }

  async stop(): Promise<void> {
    await this.#agent.stop();
    this.#stop.abort();
  }
}

export interface SourceOptions {
  readonly details: object & { readonly type: string; readonly port: number };
  readonly intervalMs: number;
  readonly local: Readonly<Record<string, unknown>>;
  readonly variables: readonly { readonly address: string; readonly type: string | null }[];
}

/** A source of any type, whose answers are waited for 300 ms. */
export function sourceOf({ details, intervalMs, local, variables }: SourceOptions): SourceInput {
  const { record, ...others } = source(1, details.port, {
    variables: variables.map(({ address, type }, i) => variable(1, i, address, { type })),
    local: { answer_timeout: "300ms", ...local },
  });
  // Drivers of the tests have details that the API does not know.
  const own = details as unknown as SourceInput["record"]["details"];
  return { ...others, record: { ...record, type: details.type, name: details.type, readout_interval: intervalMs, details: own } };
}

/** The first answer that says something. */
export function firstOf<T, R>(all: Iterable<(one: T) => R | undefined>, one: T): R | undefined {
  for (const ask of all) {
    const answer = ask(one);
    if (answer !== undefined) return answer;
  }
  return undefined;
}
