import { randomUUID } from "node:crypto";
import type { StoreToDelivery } from "../buffer/messages.ts";
import type { BufferFileReader } from "../buffer/reader.ts";
import { createResolver, type LookUp, staleWords } from "../lib/resolver.ts";
import { logOver } from "../lib/thread/log.ts";
import type { Port } from "../lib/thread/port.ts";
import { bootTimeOf, type Clock, isoTimeAt, upMsOf } from "../model/clock.ts";
import type { Log, NameMemory } from "../model/context.ts";
import { messageOf, toReasonError } from "../model/failure.ts";
import type { Pki } from "../model/pki.ts";
import type { Permit, Policy } from "../model/policy.ts";
import { reportedError, type SinkReport } from "../model/report.ts";
import { startThreadClock } from "../os/clock.ts";
import { SINKS, type SinkEntry } from "../sinks/index.ts";
import { BufferView } from "./buffer-view.ts";
import { DescribedSources } from "./described-sources.ts";
import type { FromDelivery, SinkSpec, ToDelivery } from "./messages.ts";
import { prepareSink } from "./prepare-sink.ts";
import { type PumpLimits, type PumpPort, SinkPump } from "./pump.ts";
import { StoreLink } from "./store-link.ts";
import { UsedStamps } from "./used-stamps.ts";

export interface DeliveryOptions extends Partial<PumpLimits> {
  /** Kinds of sinks by type; default: all there are. */
  readonly sinks?: Readonly<Record<string, SinkEntry>>;
  /** Which addresses sinks may connect to; default: all. */
  readonly permit?: Permit;
  /** Looks names up, with a memory: a name server that is away keeps no sink from where it was connected before. Default: the system's, without. */
  readonly lookUp?: LookUp;
  /** Words for why a sink may not listen on an address; default: it may. */
  readonly listenRefusal?: (at: string) => string | undefined;
  /** Puts another policy in force, which permit and listenRefusal follow; default: there is none. */
  readonly usePolicy?: (policy: Policy) => void;
  /** The certificates, with a log for what happens to them; absent: sinks have none. */
  readonly openPki?: (log: Log) => Pki;
  /** Default: one of this thread. */
  readonly clock?: Clock;
  /** Folder of the files that sinks keep over restarts (retained topics); absent: they keep nothing. */
  readonly memoryDir?: string;
}

const LIMITS: PumpLimits = {
  maxLiveBytes: 6 * 2 ** 20,
  maxReadBytes: 2 ** 20,
  maxBatchBytes: 2 ** 20,
  maxBatchReadouts: 1000,
  maxWrittenBytes: 2 ** 20,
  maxUnderWayBytes: 4 * 2 ** 20,
  openTimeoutMs: 60_000,
  drainTimeoutMs: 2000,
};
/** How often the engine looks whether each sink gets what waits for it, and whether the clock was set. */
const LOOK_MS = 1000;
/** Changes of reports within this time make one message. */
const REPORT_MS = 50;
/** A clock that was set by more moves the times in the reports along. */
const STEP_MS = 50;

interface Slot {
  /** Undefined: the sink cannot run as it is configured. */
  readonly pump: SinkPump | undefined;
  readonly report: () => SinkReport;
}

/** Runs a delivery engine on the messages of `port`, until `shutdown`; the port is closed then. Never throws. */
export function runDelivery(port: Port, options: DeliveryOptions = {}): void {
  const engine = new DeliveryEngine((message) => port.postMessage(message), options);
  port.on("message", (message: ToDelivery) => {
    if (message.type === "shutdown") void engine.shutdown().then(() => port.close());
    else engine.receive(message);
  });
}

/** Runs the sinks: a pump for each, which gets the rows that the store commits and reads older ones from the file of the buffer. */
export class DeliveryEngine {
  readonly #post: (message: FromDelivery) => void;
  readonly #options: DeliveryOptions;
  readonly #registry: Readonly<Record<string, SinkEntry>>;
  readonly #limits: PumpLimits;
  readonly #log: Log;
  readonly #clock: Clock;
  /** When the machine was started by the clock of the last look, epoch ms. */
  #bootTimeMs: number;
  readonly #pki: Pki | undefined;
  readonly #names: NameMemory | undefined;
  readonly #slots = new Map<string, Slot>();
  /** By uuid: the last start or stop, which settles when it is done. */
  readonly #turns = new Map<string, Promise<void>>();
  readonly #sources = new DescribedSources();
  readonly #store: StoreLink;
  readonly #buffer: BufferView;
  readonly #usedStamps = new UsedStamps();
  /** Distinguishes lives of the delivery in the batch ids of unstored rows. */
  readonly #life = randomUUID();
  #reportTimer: NodeJS.Timeout | undefined;
  readonly #lookTimer: NodeJS.Timeout;
  readonly #over = new AbortController();
  #isEnding = false;
  #ending: Promise<void> | undefined;

  constructor(post: (message: FromDelivery) => void, options: DeliveryOptions) {
    this.#post = post;
    this.#options = options;
    this.#registry = options.sinks ?? SINKS;
    this.#limits = { ...LIMITS, ...options };
    this.#log = logOver(post);
    this.#clock = options.clock ?? startThreadClock(this.#over.signal);
    this.#bootTimeMs = bootTimeOf(this.#clock);
    this.#pki = options.openPki?.(this.#log);
    this.#names = options.lookUp && this.#rememberNames(options.lookUp);
    this.#store = new StoreLink((message) => this.#onStore(message));
    this.#buffer = new BufferView({
      log: this.#log,
      shared: (layout) => this.#sources.shared(layout),
      closed: () => this.#detachAll(),
      opening: () => this.#store.dropAcknowledgements(),
      opened: (file) => this.#onOpened(file),
      unreadable: () => this.#store.post({ type: "unreadable" }),
    });
    this.#lookTimer = setInterval(() => this.#look(), LOOK_MS);
  }

  receive(message: Exclude<ToDelivery, { type: "shutdown" }>): void {
    if (this.#isEnding) return;
    switch (message.type) {
      case "start":
        void this.#inTurn(message.sink.uuid, () => this.#start(message.sink));
        return;
      case "stop":
        void this.#inTurn(message.uuid, () => this.#stop(message.uuid, message.removed));
        return;
      case "layout":
        this.#sources.addPiece(message);
        return;
      case "sources":
        if (this.#sources.describe(message.sources)) this.#buffer.shareLayouts();
        for (const pump of this.#pumps()) pump.describe(this.#sources.all() ?? []);
        return;
      case "policy":
        this.#options.usePolicy?.(message.policy);
        for (const pump of this.#pumps()) pump.policyChanged();
        return;
      case "store":
        this.#store.connect(message.port);
        this.#reportOpen();
        this.#buffer.use(message.file);
        return;
    }
  }

  /** Closes the sinks, posts the last reports and `stopped`. Idempotent. */
  shutdown(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    this.#isEnding = true;
    clearInterval(this.#lookTimer);
    this.#over.abort();
    this.#buffer.stopReopening();
    await Promise.all([...this.#slots.keys()].map((uuid) => this.#inTurn(uuid, async () => this.#slots.get(uuid)?.pump?.stop(false))));
    this.#store.acknowledgeNow();
    this.#report();
    this.#buffer.close();
    this.#usedStamps.close();
    this.#store.close();
    this.#post({ type: "stopped" });
  }

  #pumps(): readonly SinkPump[] {
    return [...this.#slots.values()].flatMap(({ pump }) => (pump ? [pump] : []));
  }

  /** Each uuid's starts and stops happen one after the other. */
  #inTurn(uuid: string, work: () => Promise<void>): Promise<void> {
    const turn = (this.#turns.get(uuid) ?? Promise.resolve())
      .then(work)
      .catch((error: unknown) => this.#log.error({ err: error }, `a data sink could not be started or stopped: ${messageOf(error)}`));
    this.#turns.set(uuid, turn);
    void turn.then(() => {
      if (this.#turns.get(uuid) === turn) this.#turns.delete(uuid);
    });
    return turn;
  }

  async #start(spec: SinkSpec): Promise<void> {
    if (this.#isEnding) return;
    await this.#stop(spec.uuid, false);
    try {
      const prepared = await prepareSink(spec, this.#registry);
      if (this.#isEnding) return;
      const pump = new SinkPump(prepared, this.#portOf(spec.uuid), this.#limits);
      this.#slots.set(spec.uuid, { pump, report: () => pump.report() });
      const sources = this.#sources.all();
      if (sources) pump.describe(sources);
      this.#buffer.access((file) => this.#attach(spec.uuid, pump, file));
    } catch (error) {
      this.#refuse(spec, error);
    }
    this.#reportSoon();
  }

  #rememberNames(lookUp: LookUp): NameMemory {
    return createResolver({
      lookUp,
      now: this.#clock.monotonicMs,
      onStale: (host, address, ageMs) => this.#log.warn({ host, address }, staleWords(host, ageMs)),
    });
  }

  #refuse(spec: SinkSpec, thrown: unknown): void {
    const clock = this.#clock;
    const upMs = upMsOf(clock);
    const report = () => refusedReport(spec, thrown, isoTimeAt(clock, upMs));
    this.#slots.set(spec.uuid, { pump: undefined, report });
    const { since, error } = report();
    const { reason, condition, detail } = error;
    this.#log.warn(
      { sink: spec.name ?? spec.uuid, type: spec.type, reason, condition, since, detail },
      "the data sink cannot run as it is configured",
    );
  }

  async #stop(uuid: string, removed: boolean): Promise<void> {
    await this.#slots.get(uuid)?.pump?.stop(removed);
    this.#store.acknowledgeNow();
    this.#slots.delete(uuid);
    this.#reportSoon();
  }

  #portOf(uuid: string): PumpPort {
    const { permit, listenRefusal, memoryDir } = this.#options;
    const names = this.#names;
    const pki = this.#pki;
    const buffer = this.#buffer;
    return {
      log: this.#log,
      clock: this.#clock,
      surroundings: { ...(permit && { permit }), ...(names && { names }), ...(listenRefusal && { listenRefusal }), ...(pki && { pki }) },
      ...(memoryDir !== undefined && { memoryDir }),
      layout: (id) => buffer.layout(id),
      read: (from, to, maxBytes) => this.#usedStamps.restored(buffer.read(from, to, maxBytes)),
      epoch: () => buffer.epoch(),
      startOf: (id) => buffer.startOf(id),
      sending: (rows) => {
        const sending = this.#usedStamps.sending(rows);
        this.#store.useStamps(sending.used);
        return sending.rows;
      },
      life: this.#life,
      acknowledge: (settled) => this.#store.acknowledge(uuid, settled),
      deliveredUnstored: (values) => this.#store.post({ type: "delivered_unstored", sink: uuid, values }),
      losses: () => buffer.losses(uuid),
      lossPublished: (loss) => this.#store.post({ type: "losses_published", losses: [{ sink: uuid, ...loss }] }),
      changed: () => this.#reportSoon(),
    };
  }

  #report(): void {
    clearTimeout(this.#reportTimer);
    this.#reportTimer = undefined;
    this.#reportOpen();
    this.#post({ type: "report", sinks: [...this.#slots.values()].map(({ report }) => report()) });
  }

  /** To the store: which sinks take values at once. */
  #reportOpen(): void {
    const keeping = this.#pumps().filter(({ keepsAll }) => keepsAll);
    if (keeping.length === 0) return;
    const open = keeping.filter((pump) => pump.isOpen()).length;
    this.#store.post({ type: "sinks_open", open, closed: keeping.length - open });
  }

  #reportSoon(): void {
    this.#reportTimer ??= setTimeout(() => this.#report(), REPORT_MS);
  }

  /** Starts a sink from its position in the file; one that the store does not know yet waits for it. */
  #attach(uuid: string, pump: SinkPump, file: BufferFileReader): void {
    if (pump.isAttached()) return;
    const place = file.place(uuid);
    if (place) pump.attach(place);
  }

  #attachAll(file: BufferFileReader): void {
    for (const [uuid, { pump }] of this.#slots) if (pump) this.#attach(uuid, pump, file);
  }

  /** Looks by the buffer's account, which is not this thread's. */
  #look(): void {
    const bootTimeMs = bootTimeOf(this.#clock);
    if (Math.abs(bootTimeMs - this.#bootTimeMs) > STEP_MS) this.#reportSoon();
    this.#bootTimeMs = bootTimeMs;
    const nowMs = performance.now();
    for (const [uuid, { pump }] of this.#slots) {
      const place = pump?.keepsAll ? this.#buffer.place(uuid) : undefined;
      if (pump && place && pump.look(place.account, nowMs)) pump.attach(place);
    }
  }

  #onOpened(file: BufferFileReader): void {
    this.#usedStamps.use(file.file, file.epoch());
    this.#attachAll(file);
  }

  #detachAll(): void {
    for (const pump of this.#pumps()) pump.detach();
  }

  #advance(to: number): void {
    for (const pump of this.#pumps()) pump.advance(to);
  }

  #onStore(message: StoreToDelivery): void {
    switch (message.type) {
      case "ready":
        this.#buffer.setStart(message.start);
        if (message.nextId !== undefined) this.#advance(message.nextId);
        return;
      case "sinks":
        this.#buffer.access((file) => this.#attachAll(file));
        return;
      case "layout":
        this.#buffer.addLayout(message.id, message.layout);
        return;
      case "skipped":
        this.#advance(message.nextId);
        return;
      case "committed":
        this.#store.post({ type: "received" });
        for (const pump of this.#pumps()) pump.take(message.batches);
        return;
      case "unstored":
        this.#store.post({ type: "received" });
        for (const pump of this.#pumps()) pump.takeUnstored(message.batches);
        return;
      case "kept_back":
        for (const pump of this.#pumps()) pump.keepBack(message.bytes);
        return;
      case "losses":
        for (const uuid of message.sinks) this.#slots.get(uuid)?.pump?.publishLosses();
        return;
    }
  }
}

function refusedReport(
  { uuid, name, type }: SinkSpec,
  thrown: unknown,
  since: string,
): SinkReport & { readonly error: NonNullable<SinkReport["error"]> } {
  const error = reportedError(toReasonError(thrown));
  return { uuid, name, type, endpoint: null, state: "ERROR", since, error, next_retry_at: null, warnings: [] };
}
