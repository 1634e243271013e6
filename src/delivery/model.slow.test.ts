import path from "node:path";
import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import type { Ledger } from "../buffer/buffer.ts";
import { memoryFolder } from "../buffer/testing/folder.ts";
import { plainLayout, plainReadout } from "../buffer/testing/readouts.ts";
import { canonicalJson, reconcile } from "../lib/reconcile.ts";
import { ReasonError } from "../model/reason.ts";
import type { FromDelivery, SinkSpec } from "../threads/delivery/messages.ts";
import { StoreClient } from "../threads/store/host.ts";
import type { FromStore } from "../threads/store/messages.ts";
import { serveStore } from "../threads/store/serve.ts";
import { runDelivery } from "./engine.ts";
import { keepingSinks } from "./testing/keeping-sink.ts";
import { mqttSpec } from "./testing/rig.ts";
import { Wire, type WireEnd } from "./testing/wire.ts";

/**
 * Store and delivery as the host wires them, in fake time. Each message between them waits until a step lets it through, so that sinks come,
 * go and change, threads end and values are committed in every order. Each sink gets all that was read while it was configured.
 */

const START_MS = 1_800_000_000_000;
const STEP_MS = 20;
/** Far below the time after which the watchdog attaches a sink again: nothing may need it. */
const SERVED_WITHIN_MS = 6000;
const UUIDS = ["a", "b", "c"] as const;
const layout = plainLayout(2);

/** The store's thread and the delivery's, and what the host does to keep them running. */
class House {
  readonly #folder = memoryFolder();
  readonly #file = path.join(this.#folder.path, "buffer.db");
  readonly #client = new StoreClient({
    run: "run-1",
    postDelayMs: 5,
    onLedger: (ledger) => {
      this.ledger = ledger;
    },
    onAlarm: (message) => this.alarms.push(message),
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

  constructor() {
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
    const end = this.#ends()[way % this.#ends().length];
    for (let i = 0; i < most && end?.deliver(); i++);
  }

  deliverAll(): void {
    while (this.#ends().some((end) => end.deliver()));
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
    if (message.type === "log" && message.level === "error") this.alarms.push(message.message);
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
    const link = new Wire();
    // As the ends of the one before, which either thread still has, until it gets this one.
    this.#link = link;
    this.#store.a.postMessage({ type: "delivery", port: link.a.port, of: "every" });
    this.#delivery.a.postMessage({ type: "store", port: link.b, file: this.#file });
  }
}

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

type Step =
  | { readonly do: "append" | "wait"; readonly n: number }
  | { readonly do: "sinks"; readonly uuids: readonly string[] }
  | { readonly do: "rename" | "lose"; readonly uuid: string }
  | { readonly do: "deliver"; readonly way: number; readonly n: number }
  | { readonly do: "deliver_all" | "end_store" | "end_delivery" };

const uuid = fc.constantFrom(...UUIDS);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("append" as const), n: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("wait" as const), n: fc.integer({ min: 0, max: 15 }) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("sinks" as const), uuids: fc.subarray([...UUIDS]) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("rename" as const), uuid }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("lose" as const), uuid }) },
  {
    weight: 12,
    arbitrary: fc.record({ do: fc.constant("deliver" as const), way: fc.nat({ max: 5 }), n: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("deliver_all" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("end_store" as const, "end_delivery" as const) }) },
);

function perform(house: House, one: Step, renames: { count: number }): void {
  if (one.do === "append") house.append(one.n);
  else if (one.do === "sinks") house.setSinks(one.uuids.map((id) => house.configured().find((spec) => spec.uuid === id) ?? specOf(id)));
  else if (one.do === "rename") {
    const name = `name ${++renames.count}`;
    house.setSinks(house.configured().map((spec) => (spec.uuid === one.uuid ? { ...spec, name } : spec)));
  } else if (one.do === "lose") house.loseSink(one.uuid);
  else if (one.do === "deliver") house.deliver(one.way, one.n);
  else if (one.do === "deliver_all") house.deliverAll();
  else if (one.do === "end_store") house.endStore();
  else if (one.do === "end_delivery") house.endDelivery();
}

const specOf = (id: string): SinkSpec => mqttSpec(1, { uuid: id, name: id }, { publish_interval: 50 });

afterEach(() => void vi.useRealTimers());

async function play(steps: readonly Step[]): Promise<void> {
  vi.useFakeTimers({ now: START_MS });
  const house = new House();
  const renames = { count: 0 };
  try {
    for (const one of steps) {
      perform(house, one, renames);
      await vi.advanceTimersByTimeAsync(one.do === "wait" ? one.n * STEP_MS : 0);
    }
    house.append(1);
    for (let ms = 0; ms < SERVED_WITHIN_MS && (house.missing().length > 0 || house.pending() > 0 || ms < 500); ms += STEP_MS) {
      house.deliverAll();
      await vi.advanceTimersByTimeAsync(STEP_MS);
    }
    expect(house.missing()).toEqual([]);
    expect(house.pending()).toBe(0);
    expect(house.alarms).toEqual([]);
  } finally {
    await house.end();
    vi.useRealTimers();
  }
}

/** More of them by hand, where this room was changed. */
const RUNS = Number(process.env["MODEL_RUNS"] ?? 30);

test("each sink gets all that was read while it was configured, in every order of changes, commits and threads that end", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60, size: "max" }), (steps) => play(steps)),
    { numRuns: RUNS },
  );
}, 600_000);
