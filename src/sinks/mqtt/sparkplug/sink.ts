import { escapeControls } from "../../../base/plain-text.ts";
import type { Context } from "../../../model/context.ts";
import { ReasonError } from "../../../model/reason.ts";
import type { LinkReport, SourceReport } from "../../../model/report.ts";
import { type Warning, warning } from "../../../model/warning.ts";
import { withDeadline } from "../../lib/dial.ts";
import type { PublishRate } from "../../lib/publish-rate.ts";
import type { OlderBounds, PublishedLoss, Sink, SinkBatch, WriteResult } from "../../sink.ts";
import { type Connection, type ConnectOptions, connectMqtt } from "../connect.ts";
import { linkReport, WRITES } from "../link-report.ts";
import { writeLoss } from "../message.ts";
import type { Feed } from "../publish-queue.ts";
import { rateWarnings } from "../rate-warnings.ts";
import type { RetainedTopics } from "../retained-topics.ts";
import type { RetainedValues } from "../retained-values.ts";
import type { TopicOwners } from "../topic-owners.ts";
import { maxPayloadBytes, messageBytes } from "../values.ts";
import type { BdSeq } from "./bd-seq.ts";
import { type Control, ControlLine } from "./control-line.ts";
import { countOf, sendData } from "./data-feed.ts";
import type { Device } from "./device.ts";
import { deathMessage, EdgeNode, type NodeMemory, type SparkplugMessage } from "./edge-node.ts";
import { PrimaryHost } from "./primary-host.ts";
import { dataPlan, deviceId, deviceTopic, nodeTopic, type SparkplugTopics, stateTopic } from "./topics.ts";

/** Memory of an edge node over its connections. */
export interface SparkplugMemory {
  readonly bdSeq: BdSeq;
  readonly node: NodeMemory;
}

export interface SparkplugOptions {
  readonly options: Omit<ConnectOptions, "will">;
  /** `host`: of the primary host application; undefined: nothing waits for one. */
  readonly identifiers: { readonly topics: SparkplugTopics; readonly host: string | undefined };
  readonly memory: {
    readonly sparkplug: SparkplugMemory;
    readonly owners: TopicOwners;
    readonly rate: PublishRate;
    /** Topics of another payload that the broker may still keep messages of. */
    readonly retained: RetainedTopics;
    readonly retainedValues: RetainedValues;
  };
  readonly max_packet_bytes?: number | undefined;
}

/** How long one opening waits for the primary host application. */
const HOST_WAIT_MS = 20_000;
/** The sources are described right after the opening; without that the node is born alone. */
const DESCRIBED_MS = 1000;
/** A device whose source is not read any more lives so long after its last data: what was read before is still on its way. */
const LINGER_MS = 3000;
/** Rebirths are at least so far apart: each is as large as everything that was born. */
const REBIRTH_MS = 1000;
/** Refused commands are told at most so often. */
const REFUSED_MS = 1000;
const DEATH_MS = 500;
const MAX_NAME_CHARACTERS = 60;

/** Connects as an edge node, and waits for the primary host application where one is configured. Throws ReasonError; nothing is left open then. */
export async function openSparkplug(sparkplug: SparkplugOptions, ctx: Context): Promise<Sink> {
  const { options, identifiers, memory } = sparkplug;
  const { topics } = identifiers;
  let bdSeq = 0;
  const payload = (): Buffer => {
    bdSeq = memory.sparkplug.bdSeq.next();
    return deathMessage(topics, bdSeq, Date.now()).payload;
  };
  const connection = await connectMqtt({ ...options, will: { topic: nodeTopic(topics, "NDEATH"), payload, isRequired: true } }, ctx);
  try {
    const sink = new SparkplugSink(connection, new EdgeNode(topics, bdSeq, memory.sparkplug.node), sparkplug);
    await sink.begin(ctx);
    return sink;
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** One connection as an edge node. */
class SparkplugSink implements Sink {
  readonly inFlight: number;
  readonly lost: Promise<Error>;
  readonly #connection: Connection;
  readonly #node: EdgeNode;
  readonly #options: SparkplugOptions;
  readonly #maxPacketBytes: number;
  readonly #host = new PrimaryHost();
  readonly #control = new ControlLine();
  /** Batches under way, by device. */
  readonly #writing = new Map<Device, number>();
  /** When a device last had data or was read, monotonic ms. */
  readonly #idleSinceMs = new Map<Device, number>();
  /** Devices whose birth is larger than the broker takes. */
  readonly #tooLarge = new Set<Device>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #beginTimer: NodeJS.Timeout | undefined;
  #settleTimer: NodeJS.Timeout | undefined;
  /** The node and the devices that are read are born, or about to be: data and losses follow. */
  readonly #ready = Promise.withResolvers<void>();
  readonly #hostOnline = Promise.withResolvers<void>();
  readonly #hostOffline = Promise.withResolvers<ReasonError>();
  #isBegun = false;
  #isRebirthDue = false;
  #rebornMs = Number.NEGATIVE_INFINITY;
  #isRefusedDue = false;
  #lastRefused = "";
  #ungranted: readonly string[] = [];
  #isEnding = false;
  #isLost = false;
  #warningsChanged: () => void = () => {};

  constructor(connection: Connection, node: EdgeNode, options: SparkplugOptions) {
    this.#connection = connection;
    this.#node = node;
    this.#options = options;
    this.#maxPacketBytes = Math.min(connection.maxPacketBytes, options.max_packet_bytes ?? connection.maxPacketBytes);
    this.inFlight = WRITES * connection.window;
    this.lost = Promise.race([connection.lost, this.#hostOffline.promise]);
    void connection.lost.then((reason) => {
      this.#isLost = true;
      this.#clearTimers();
      this.#control.fail(reason);
      this.#ready.resolve();
    });
  }

  get warnings(): readonly Warning[] {
    const { owners } = this.#options.memory;
    const { topics } = this.#options.identifiers;
    const refused = this.#node.refusedCommands;
    return [
      ...rateWarnings(this.#options.memory.rate),
      ...owners.warnings(dataPlan(topics)),
      ...(refused === 0
        ? []
        : [
            warning(
              "commands_refused",
              `${refused} metrics of commands were refused since the start, the last one ${this.#lastRefused || "over an earlier connection"}: the collector only reads, and obeys Node Control/Rebirth alone`,
            ),
          ]),
      ...this.#ungranted.map((topic) =>
        warning(
          "commands_unheard",
          `the broker does not grant the subscription to ${topic}: commands there are not heard, Rebirth too`,
          topic,
        ),
      ),
      ...[...this.#tooLarge].map(({ id }) => warning("birth_too_large", this.#birthProblem(id), id)),
    ];
  }

  watchWarnings(changed: () => void): void {
    this.#warningsChanged = changed;
    this.#options.memory.rate.watch(changed);
  }

  link(): LinkReport {
    return linkReport(this.#connection.link, this.#options.memory.rate);
  }

  older(): OlderBounds {
    return { writes: this.#connection.window, bytes: this.#connection.link.state().windowBytes };
  }

  /** Subscribes, and waits for the primary host application. Throws ReasonError. */
  async begin(ctx: Context): Promise<void> {
    const { options, identifiers } = this.#options;
    const { topics, host } = identifiers;
    const state = host === undefined ? [] : [stateTopic(host)];
    const wanted = [nodeTopic(topics, "NCMD"), deviceTopic(topics, "DCMD", "+"), ...state];
    const subscribing = this.#connection.subscribe(wanted, (topic, payload) => this.#take(topic, payload));
    this.#ungranted = await withDeadline(subscribing, options.connectTimeoutMs, ctx.signal, () => {
      return new ReasonError("TIMEOUT", `the broker did not answer a subscription within ${options.connectTimeoutMs} ms`);
    });
    if (host === undefined) return;
    if (this.#ungranted.includes(stateTopic(host)))
      throw new ReasonError(
        "UNKNOWN",
        `the broker does not grant the subscription to ${stateTopic(host)}, by which the primary host application is waited for`,
        {
          condition: "server_refuses",
        },
      );
    const lost = this.#connection.lost.then((reason) => {
      throw reason;
    });
    await withDeadline(Promise.race([this.#hostOnline.promise, lost]), HOST_WAIT_MS, ctx.signal, () => offline(host, options.sink));
  }

  async describe(sources: readonly SourceReport[]): Promise<void> {
    const { owners } = this.#options.memory;
    owners.describe(sources);
    const nowMs = performance.now();
    const configured = new Set<Device>();
    for (const source of sources) {
      if (!owners.ownsName(source)) continue;
      const device = this.#node.device(deviceId(source.name));
      configured.add(device);
      if (source.layout) device.adopt(source.layout);
      this.#read(device, isReadNow(source), nowMs);
    }
    for (const device of this.#node.devices) {
      device.isConfigured = configured.has(device);
      if (!device.isConfigured) this.#read(device, false, nowMs);
    }
    this.#begin();
    for (const device of this.#node.devices) if (this.#needsBirth(device)) this.#add({ messages: this.#birthLater(device) });
    this.#settle();
  }

  async write(batch: SinkBatch, ctx: Context): Promise<WriteResult> {
    await this.#born();
    const { topics } = this.#options.identifiers;
    const device = this.#node.device(deviceId(batch.layout.source.name));
    const topic = deviceTopic(topics, "DDATA", device.id);
    const refusal = this.#options.memory.owners.claim(dataPlan(topics), topic, batch.layout, 0);
    if (refusal !== undefined) return { refused: countOf(batch), detail: refusal };
    this.#writing.set(device, (this.#writing.get(device) ?? 0) + 1);
    try {
      return await this.#send(batch, device, topic, ctx);
    } finally {
      const left = (this.#writing.get(device) ?? 1) - 1;
      if (left > 0) this.#writing.set(device, left);
      else this.#writing.delete(device);
      this.#idleSinceMs.set(device, performance.now());
      this.#settle();
    }
  }

  async publishLoss(loss: PublishedLoss): Promise<boolean> {
    await this.#born();
    await new Promise<void>((sent, fail) => {
      const messages = later(() => this.#node.lossData(writeLoss(loss), Date.now()));
      this.#add({ messages, sent, fail });
    });
    return true;
  }

  async close(): Promise<void> {
    this.#isEnding = true;
    this.#clearTimers();
    if (this.#node.isBorn && !this.#isLost) {
      const { topic, payload } = deathMessage(this.#node.topics, this.#node.bdSeq, Date.now());
      const late = new Promise<void>((done) => setTimeout(done, DEATH_MS).unref());
      await Promise.race([this.#connection.publish(topic, payload, false).catch(() => {}), late]);
    }
    await this.#connection.close();
  }

  /** Resolves once data and losses may be queued, also where the connection is lost before. */
  #born(): Promise<void> {
    if (!this.#isBegun) this.#beginTimer ??= this.#after(DESCRIBED_MS, () => this.#begin());
    return this.#ready.promise;
  }

  #read(device: Device, isRead: boolean, nowMs: number): void {
    if (device.isRead && !isRead) this.#idleSinceMs.set(device, nowMs);
    device.isRead = isRead;
  }

  #needsBirth(device: Device): boolean {
    return device.isKnown && device.isRead && (!device.isBorn || !device.wasRead);
  }

  /** The first births of the session, once. */
  #begin(): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    this.#rebornMs = performance.now();
    this.#add({ messages: this.#births() });
    this.#clearRetained();
    this.#ready.resolve();
  }

  *#births(): Generator<SparkplugMessage> {
    const wanted = [...this.#node.devices].filter((device) => device.isKnown && (device.isRead || device.isAlive));
    this.#tooLarge.clear();
    yield this.#node.birth(Date.now());
    for (const device of wanted) yield* this.#birthOf(device);
  }

  *#birthLater(device: Device): Generator<SparkplugMessage> {
    if (this.#needsBirth(device)) yield* this.#birthOf(device);
  }

  *#birthOf(device: Device): Generator<SparkplugMessage> {
    const nowMs = Date.now();
    const topic = deviceTopic(this.#node.topics, "DBIRTH", device.id);
    if (this.#node.birthBytes(device, nowMs) <= maxPayloadBytes(topic, this.#maxPacketBytes)) {
      if (this.#tooLarge.delete(device)) this.#warningsChanged();
      yield this.#node.deviceBirth(device, nowMs);
    } else if (!this.#tooLarge.has(device)) {
      this.#tooLarge.add(device);
      this.#warningsChanged();
    }
  }

  #birthProblem(id: string): string {
    return `the birth of ${id}, which holds all its variables, is larger than the ${this.#maxPacketBytes} bytes that the broker takes; raise its limit, or split the source`;
  }

  /** Clears messages that another payload of this sink has left at the broker. */
  #clearRetained(): void {
    const { retained, retainedValues } = this.#options.memory;
    const clear = (topic: string, cleared: () => void): void => {
      // The next opening tries again where this one fails.
      if (this.#connection.canRetain) void this.#connection.publish(topic, "", true).then(cleared, () => {});
    };
    for (const topic of retained) clear(topic, () => retained.delete(topic));
    for (const topic of retainedValues.all()) clear(topic, () => retainedValues.cleared(topic));
  }

  #add(control: Control): void {
    this.#control.add(control);
    const make: Feed["make"] = () => {
      const publish = this.#control.next();
      return publish && { publish, isLast: false };
    };
    this.#connection.feed({ key: "", isOlder: false, make, fail: () => {} });
  }

  #send(batch: SinkBatch, device: Device, topic: string, ctx: Context): Promise<WriteResult> {
    const isOlder = batch.backlog && !batch.inOrder;
    return sendData(batch, device, {
      node: this.#node,
      connection: this.#connection,
      control: this.#control,
      isOlder,
      maxBytes: () => messageBytes(batch, isOlder, maxPayloadBytes(topic, this.#maxPacketBytes), this.#connection.link),
      maxPacketBytes: this.#maxPacketBytes,
      birth: () => this.#birthOf(device).next().value ?? undefined,
      birthProblem: () => this.#birthProblem(device.id),
      throwIfEnding: () => this.#throwIfEnding(ctx),
    });
  }

  #throwIfEnding({ signal }: Context): void {
    if (this.#isEnding || signal.aborted) throw new ReasonError("CONNECTION_CLOSED", "stopped by the collector");
  }

  /** Lets devices die that are not read and have nothing left to send. */
  #settle(): void {
    if (this.#isEnding || this.#isLost) return;
    const nowMs = performance.now();
    for (const device of this.#node.devices) {
      if (device.isRead || this.#writing.has(device)) continue;
      const restMs = (this.#idleSinceMs.get(device) ?? Number.NEGATIVE_INFINITY) + LINGER_MS - nowMs;
      if (device.isAlive && restMs > 0) this.#settleIn(restMs);
      else if (device.isAlive) this.#add({ messages: this.#deathLater(device) });
      else if (!device.isConfigured && restMs <= 0) this.#forget(device);
    }
  }

  #settleIn(ms: number): void {
    this.#settleTimer ??= this.#after(ms, () => {
      this.#settleTimer = undefined;
      this.#settle();
    });
  }

  *#deathLater(device: Device): Generator<SparkplugMessage> {
    if (device.isAlive && !device.isRead && !this.#writing.has(device)) yield this.#node.deviceDeath(device, Date.now());
    if (!device.isConfigured && !this.#writing.has(device)) this.#forget(device);
  }

  #forget(device: Device): void {
    this.#node.forget(device);
    this.#idleSinceMs.delete(device);
    this.#tooLarge.delete(device);
  }

  /** A message from outside. Never throws. */
  #take(topic: string, payload: Buffer): void {
    const { host } = this.#options.identifiers;
    if (host !== undefined && topic === stateTopic(host)) this.#takeState(host, payload);
    else this.#takeCommand(topic, payload);
  }

  #takeState(host: string, payload: Buffer): void {
    const wasOnline = this.#host.isOnline;
    const isOnline = this.#host.take(payload);
    if (isOnline) this.#hostOnline.resolve();
    else if (wasOnline) this.#hostOffline.resolve(offline(host, this.#options.options.sink));
  }

  #takeCommand(topic: string, payload: Buffer): void {
    const { isRebirth, refused, names } = this.#node.command(topic, payload);
    if (refused > 0) {
      const about = names.length === 0 ? "" : ` (${names.join(", ").slice(0, MAX_NAME_CHARACTERS)})`;
      this.#lastRefused = escapeControls(`at ${topic.slice(0, MAX_NAME_CHARACTERS * 2)}${about}`);
      this.#tellRefused();
    }
    // Before the first births there is nothing to repeat.
    if (isRebirth && this.#isBegun) this.#rebirth();
  }

  #rebirth(): void {
    if (this.#isRebirthDue || this.#isEnding) return;
    this.#isRebirthDue = true;
    this.#after(Math.max(0, this.#rebornMs + REBIRTH_MS - performance.now()), () => {
      this.#isRebirthDue = false;
      this.#rebornMs = performance.now();
      this.#add({ messages: this.#births() });
    });
  }

  #tellRefused(): void {
    if (this.#isRefusedDue || this.#isEnding) return;
    this.#isRefusedDue = true;
    this.#after(REFUSED_MS, () => {
      this.#isRefusedDue = false;
      if (this.#isBegun) this.#add({ messages: later(() => this.#node.refusedData(Date.now())) });
      this.#warningsChanged();
    });
  }

  /** Undefined: the connection ends. */
  #after(ms: number, work: () => void): NodeJS.Timeout | undefined {
    if (this.#isEnding || this.#isLost) return undefined;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, ms);
    this.#timers.add(timer);
    return timer;
  }

  #clearTimers(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }
}

/** The device answers, if only with faults: those are its values. */
const isReadNow = ({ status, error }: SourceReport): boolean => status.state.type === "OK" || error?.condition === "all_variables_faulted";

/** One message, made when it is sent. */
function* later(make: () => SparkplugMessage): Generator<SparkplugMessage> {
  yield make();
}

const offline = (host: string, sink = "NAME"): ReasonError =>
  new ReasonError("UNKNOWN", `the primary host application ${host} is offline: values wait for it`, {
    nextStep: `Start the host application ${host}, or name another one: \`sudo collector sink set ${sink} primary_host_id=HOST\`.`,
  });
