import { randomUUID } from "node:crypto";
import type { AnyDriver } from "../../drivers/driver.ts";
import { Agent } from "../../src/agent/agent.ts";
import type { SourceInput } from "../../src/agent/source-spec.ts";
import { silentLog } from "../../src/model/context.ts";
import type { SourceReport } from "../../src/model/report.ts";
import type { Readout } from "../../src/model/value.ts";
import { startClock } from "../../src/os/clock.ts";
import rackDriver from "../support/rack/driver.ts";
import { encode, type Rack, type RackOptions, type RackRequest, type RackSymbol, startRack } from "../support/rack/simulator.ts";
import { startUdpFaultProxy, type UdpFaultProxy } from "../support/udp-fault-proxy.ts";

export const symbolOf = (i: number): string => `Cell.v${i}`;
const ITEM_SYMBOLS = 4;

/** So many symbols of one word; four lie beside each other, so that a request has several items. */
const symbolsOf = (count: number): readonly RackSymbol[] =>
  Array.from({ length: count }, (_, i) => ({
    name: symbolOf(i),
    type: "INT",
    words: 1,
    elements: [encode.INT(i)],
    gap: i % ITEM_SYMBOLS === ITEM_SYMBOLS - 1 ? 8 : 0,
  }));

/** What one readout brought, and what it asked for. */
export interface Seen {
  /** Counts those that failed too. */
  readonly number: number;
  readonly good: number;
  readonly readout: Readout;
  /** That came to the rack since the readout before. */
  readonly requests: readonly RackRequest[];
}

export interface RackPlantOptions {
  readonly symbols: number;
  readonly intervalMs: number;
  readonly rack?: RackOptions;
  readonly local?: Readonly<Record<string, unknown>>;
  /** Default: the rack's. */
  readonly driver?: AnyDriver;
  /** Before the source is started. */
  readonly before?: (rack: Rack) => void;
}

/** A real agent that reads all symbols of a rack, over a proxy. */
export class RackPlant {
  readonly rack: Rack;
  readonly proxy: UdpFaultProxy;
  readonly seen: Seen[] = [];
  /** Lines of the log at `warn` and above. */
  readonly lines: string[] = [];
  readonly #symbols: number;
  readonly #stop = new AbortController();
  readonly #agent: Agent;
  #requests = 0;

  private constructor(rack: Rack, proxy: UdpFaultProxy, symbols: number, driver: AnyDriver) {
    this.rack = rack;
    this.proxy = proxy;
    this.#symbols = symbols;
    const take = (_: object, message: string) => void this.lines.push(message);
    this.#agent = new Agent({
      drivers: { rack: { driver: async () => ({ default: driver }) } },
      clock: startClock(this.#stop.signal),
      logFor: () => ({ ...silentLog, warn: take, error: take }),
      emit: (_, readout) => this.#take(readout),
      changed() {},
    });
  }

  static async start({
    symbols,
    intervalMs,
    rack: options = {},
    local = {},
    driver = rackDriver,
    before,
  }: RackPlantOptions): Promise<RackPlant> {
    const rack = await startRack({ symbols: symbolsOf(symbols), ...options });
    before?.(rack);
    const proxy = await startUdpFaultProxy(rack.port);
    const plant = new RackPlant(rack, proxy, symbols, driver);
    await plant.#agent.apply([sourceOf(symbols, proxy.port, intervalMs, local)]);
    return plant;
  }

  #take(readout: Readout): void {
    const { requests } = this.rack;
    const good = readout.readings.filter((reading, i) => reading?.quality === "good" && reading.value === this.valueOf(i)).length;
    this.seen.push({ number: this.report().counters.readouts, good, readout, requests: requests.slice(this.#requests) });
    this.#requests = requests.length;
  }

  /** What a symbol holds: its number, and a thousand more with each program. */
  valueOf(i: number): number {
    return i + (this.rack.program - 1) * 1000;
  }

  /** Another program, in which every symbol is elsewhere and holds something else. */
  download(): void {
    this.rack.download();
    for (let i = 0; i < this.#symbols; i++) this.rack.put(symbolOf(i), [encode.INT(this.valueOf(i))]);
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
    return this.last?.good === this.#symbols;
  }

  /** How many readouts it takes from now on until every value is good, with those that fail. */
  async readoutsUntilWhole(timeoutMs = 30_000): Promise<number> {
    const from = this.report().counters.readouts;
    const wholeSince = () => this.seen.find(({ number, good }) => number > from && good === this.#symbols);
    await this.until(() => wholeSince() !== undefined, timeoutMs);
    return (wholeSince()?.number ?? from) - from;
  }

  async readouts(count: number, timeoutMs = 30_000): Promise<readonly Seen[]> {
    const from = this.seen.length;
    await this.until(() => this.seen.length >= from + count, timeoutMs);
    return this.seen.slice(from, from + count);
  }

  async until(holds: () => boolean, timeoutMs = 30_000): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!holds()) {
      if (performance.now() > deadline) throw new Error(`it has not come to that within ${timeoutMs} ms: ${this.words()}`);
      await new Promise((done) => setTimeout(done, 10));
    }
  }

  /** For messages. */
  words(): string {
    const { status, error, warnings, counters } = this.report();
    const asked = this.seen.slice(-4).map(({ good, requests }) => `${good} good with ${requests.map(({ kind }) => kind).join(" ")}`);
    return JSON.stringify({ state: status.state.type, error: error?.detail, warnings, counters, asked });
  }

  async stop(): Promise<void> {
    await this.#agent.stop();
    this.#stop.abort();
    await this.proxy.close();
    await this.rack.close();
  }
}

function sourceOf(symbols: number, port: number, intervalMs: number, local: Readonly<Record<string, unknown>>): SourceInput {
  const uuid = randomUUID();
  return {
    record: {
      uuid,
      type: "rack",
      name: "rack",
      collector: uuid,
      machine: uuid,
      manufacturer: null,
      device_model: null,
      note: null,
      readout_interval: intervalMs,
      readout_limit: null,
      details: { type: "rack", host: "127.0.0.1", port } as unknown as SourceInput["record"]["details"],
    },
    variables: Array.from({ length: symbols }, (_, i) => ({
      uuid: randomUUID(),
      data_source: uuid,
      name: `v${i}`,
      address: symbolOf(i),
      type: i % 2 === 0 ? "INT" : null,
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
