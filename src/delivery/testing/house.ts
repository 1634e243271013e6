import path from "node:path";
import { vi } from "vitest";
import type { Ledger, SinkLedger } from "../../buffer/buffer.ts";
import type { FromStore, StoreToDelivery } from "../../buffer/messages.ts";
import { memoryFolder } from "../../buffer/testing/folder.ts";
import { plainLayout, plainReadout } from "../../buffer/testing/readouts.ts";
import { canonicalJson, reconcile } from "../../lib/reconcile.ts";
import type { LogMessage } from "../../lib/thread/log.ts";
import { ReasonError } from "../../model/reason.ts";
import type { SinkReport } from "../../model/report.ts";
import { StoreClient } from "../../threads/store/host.ts";
import { serveStore } from "../../threads/store/serve.ts";
import { runDelivery } from "../engine.ts";
import type { FromDelivery, SinkSpec } from "../messages.ts";
import { type KeepingHooks, keepingSinks } from "./keeping-sink.ts";
import { Wire, type WireEnd } from "./wire.ts";

export const START_MS = 1_800_000_000_000;
/** The ways that messages go. */
export const WAYS = [0, 1, 2, 3, 4, 5] as const;
/** Time passes in steps. */
export const STEP_MS = 20;
const layout = plainLayout(2);

export interface HouseOptions {
  readonly sinks?: KeepingHooks;
  /** Messages of the store that do not arrive at the delivery. */
  readonly loses?: (message: StoreToDelivery) => boolean;
}

/** The store's thread and the delivery's, and what the host does to keep them running: in fake time, on this thread. */
export class House {
  readonly #folder = memoryFolder();
  readonly #file = path.join(this.#folder.path, "buffer.db");
  readonly #client = new StoreClient({
    run: "run-1",
    postDelayMs: 5,
    onLedger: (ledger) => {
      this.ledger = ledger;
    },
    onAlarm: ({ text }) => this.alarms.push(text),
  });
  readonly alarms: string[] = [];
  ledger: Ledger | undefined;
  readonly #written = new Map<string, Set<number>>();
  readonly #losers = new Map<string, (reason: Error) => void>();
  #specs: ReadonlyMap<string, SinkSpec> = new Map();
  #store = new Wire();
  #isStoreReady = false;
  #delivery = new Wire();
  #link = new Wire();
  #life = 0;
  /** By sink: the numbers of the readouts that were appended while it was configured, since it was last added. */
  readonly #owed = new Map<string, number[]>();
  #readouts = 0;
  readonly #options: HouseOptions;
  #held: ReadonlySet<number> = new Set();
  #reports: readonly SinkReport[] = [];
  /** Lines of the delivery's log, from info on. */
  readonly lines: LogMessage[] = [];

  constructor(options: HouseOptions = {}) {
    this.#options = options;
    this.#startStore();
    this.#startDelivery();
  }

  append(count: number): void {
    for (let i = 0; i < count; i++) {
      const number = this.#readouts++;
      this.#client.append(layout, plainReadout(2, number, START_MS + number));
      for (const uuid of this.#specs.keys()) this.#owed.get(uuid)?.push(number);
    }
  }

  setSinks(specs: readonly SinkSpec[]): void {
    const next = new Map(specs.map((spec) => [spec.uuid, spec]));
    for (const uuid of next.keys()) if (!this.#specs.has(uuid)) this.#owed.set(uuid, []);
    const plan = reconcile(next, new Map([...this.#specs].map(([uuid, spec]) => [uuid, canonicalJson(spec)])), canonicalJson);
    this.#specs = next;
    this.#client.setSinks(specs.map(({ uuid }) => ({ id: uuid, takesExploration: false })));
    for (const uuid of plan.stop) this.#delivery.a.postMessage({ type: "stop", uuid, removed: !next.has(uuid) });
    for (const uuid of plan.start) this.#delivery.a.postMessage({ type: "start", sink: next.get(uuid) });
  }

  report(uuid: string): SinkReport | undefined {
    return this.#reports.find((report) => report.uuid === uuid);
  }

  account(uuid: string): SinkLedger | undefined {
    return this.ledger?.sinks.find(({ sink }) => sink === uuid);
  }

  /** How many readouts the sink has. */
  got(uuid: string): number {
    return this.#written.get(uuid)?.size ?? 0;
  }

  configured(): readonly SinkSpec[] {
    return [...this.#specs.values()];
  }

  loseSink(uuid: string): void {
    this.#losers.get(uuid)?.(new ReasonError("CONNECTION_RESET", "the test ended it"));
  }

  /** The thread commits what it has, and what it says in its last moments is not heard. */
  endStore(): void {
    this.#store.a.cut();
    this.#store.b.put({ type: "stop" });
    while (this.#store.b.deliver());
    this.#startStore();
  }

  endDelivery(): void {
    this.#shutDownDelivery();
    this.#startDelivery();
  }

  /** Lets messages of one way through, oldest first. */
  deliver(way: number, most: number): void {
    const end = this.#ends()[way];
    for (let i = 0; i < most && end?.deliver(); i++);
  }

  /** From now on nothing goes these ways by itself. */
  hold(ways: readonly number[]): void {
    this.#held = new Set(ways);
  }

  /** Lets time pass, and messages through, until `isSo`, or this time is over. */
  async pass(ms: number, isSo: () => boolean = () => false): Promise<void> {
    for (let passedMs = 0; passedMs < ms && !isSo(); passedMs += STEP_MS) {
      while (this.#ends().some((end, way) => !this.#held.has(way) && end.deliver()));
      await vi.advanceTimersByTimeAsync(STEP_MS);
    }
  }

  /** Readouts that are owed to a sink and that it did not get, in words. */
  missing(): readonly string[] {
    return [...this.#specs.keys()].flatMap((uuid) => {
      const got = this.#written.get(uuid) ?? new Set();
      const missing = (this.#owed.get(uuid) ?? []).filter((number) => !got.has(START_MS + number));
      return missing.length === 0 ? [] : [`${uuid}: ${missing.join(" ")}`];
    });
  }

  pending(): number {
    return (this.ledger?.sinks ?? []).filter(({ sink }) => this.#specs.has(sink)).reduce((sum, { pending }) => sum + pending, 0);
  }

  async end(): Promise<void> {
    this.#shutDownDelivery();
    this.#store.b.put({ type: "stop" });
    while (this.#store.b.deliver());
    // What is closing waits for its time.
    await vi.advanceTimersByTimeAsync(10_000);
    this.#folder[Symbol.dispose]();
  }

  /** By way: from the host to the store and back, to the delivery and back, from the store to the delivery and back. */
  #ends(): readonly WireEnd[] {
    return [this.#store, this.#delivery, this.#link].flatMap(({ a, b }) => [b, a]);
  }

  #startStore(): void {
    this.#isStoreReady = false;
    const wire = new Wire();
    this.#store = wire;
    this.#client.attach((message) => wire.a.postMessage(message));
    wire.a.on("message", (message) => this.#onStore(message as FromStore));
    serveStore(wire.b.port, {
      file: this.#file,
      run: "run-1",
      maxBytes: 2 ** 30,
      maxAgeMs: 1e12,
      keepRemovedMs: 1e9,
      commitDelayMs: 10,
      ledgerIntervalMs: 200,
    });
  }

  #onStore(message: FromStore): void {
    this.#client.onMessage(message);
    if (message.type !== "ready") return;
    this.#isStoreReady = true;
    this.#linkBoth();
  }

  #startDelivery(): void {
    const life = ++this.#life;
    const wire = new Wire();
    this.#delivery = wire;
    wire.a.on("message", (message) => this.#onDelivery(message as FromDelivery));
    const sinks = keepingSinks({
      ...this.#options.sinks,
      // A module takes its time to load.
      loading: () => pause(STEP_MS),
      written: (uuid, time) => {
        if (life === this.#life) this.#written.set(uuid, (this.#written.get(uuid) ?? new Set()).add(time));
      },
      opened: (uuid, lose) => this.#losers.set(uuid, lose),
    });
    runDelivery(wire.b, { sinks: sinks.registry, drainTimeoutMs: 100 });
    for (const sink of this.#specs.values()) wire.a.postMessage({ type: "start", sink });
    this.#linkBoth();
  }

  #onDelivery(message: FromDelivery): void {
    if (message.type === "report") this.#reports = message.sinks;
    if (message.type === "log" && message.level !== "debug") this.lines.push(message);
  }

  /** What the thread has said is not heard any more, and what it writes does not count. */
  #shutDownDelivery(): void {
    this.#life++;
    this.#delivery.a.cut();
    this.#link.cut();
    this.#delivery.b.put({ type: "shutdown" });
    while (this.#delivery.b.deliver());
  }

  #linkBoth(): void {
    if (!this.#isStoreReady) return;
    // Either thread has the ends of the one before until it gets this one.
    const link = new Wire();
    this.#link = link;
    link.b.loses = (message) => this.#options.loses?.(message as StoreToDelivery) ?? false;
    this.#store.a.postMessage({ type: "delivery", port: link.a.port, of: "every" });
    this.#delivery.a.postMessage({ type: "store", port: link.b, file: this.#file });
  }
}

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
