import type { Buffer } from "node:buffer";
import type { SinkBatch } from "../../sink.ts";
import { readCommand } from "./command.ts";
import { DATATYPES, type SparkplugType } from "./datatypes.ts";
import { Device } from "./device.ts";
import { HEAD_BYTES, type Metric, type Properties, payloadOf, writeMetric } from "./payload.ts";
import { ProtoBytes } from "./proto-bytes.ts";
import { GOOD, stateOf } from "./reading.ts";
import { deviceTopic, nodeTopic, type SparkplugTopics } from "./topics.ts";

/** A message of the edge node; all have QoS 0 and are not retained. */
export interface SparkplugMessage {
  readonly topic: string;
  readonly payload: Buffer;
}

/** Metrics of one DDATA, encoded, without time and sequence number. */
export type DataPart = { readonly metrics: Buffer; readonly values: number } | { readonly tooLarge: number };

/** Memory of an edge node over its connections. */
export interface NodeMemory {
  /** By identifier. */
  readonly devices: Map<string, Device>;
  lastAlias: number;
  /** Metrics of commands that were refused since the start. */
  refusedCommands: number;
  /** The last loss, as JSON. */
  lastLoss: string | undefined;
}

export const newNodeMemory = (): NodeMemory => ({ devices: new Map(), lastAlias: 0, refusedCommands: 0, lastLoss: undefined });

/** Outcome of a command. */
export interface CommandOutcome {
  readonly isRebirth: boolean;
  /** Metrics that are not obeyed. */
  readonly refused: number;
  /** Names of some of those; an alias where there is no name. */
  readonly names: readonly string[];
}

export const REBIRTH = "Node Control/Rebirth";
const REFUSED = "Collector/Refused Commands";
const LOSS = "Collector/Loss";
const BD_SEQ = "bdSeq";

const BOOLEAN: SparkplugType = { datatype: DATATYPES.bool, scalar: "bool", isArray: false };
const INT64: SparkplugType = { datatype: DATATYPES.int64, scalar: "int64", isArray: false };
const STRING: SparkplugType = { datatype: DATATYPES.string, scalar: "string", isArray: false };

/** Aliases of the node's own metrics; those of devices come behind them. */
const ALIAS = { refused: 1, loss: 2 } as const;

const SEQ_COUNT = 256;
/** A new readout that is older by more, in ms, than one that was sent: the clock was set back, and nothing has overtaken it. */
const SET_BACK_MS = 600_000;
const MAX_NAMES = 3;

/** bdSeq of the next CONNECT; `last` undefined: of the first one. */
export const nextBdSeq = (last: number | undefined): number => (last === undefined ? 0 : (last + 1) % SEQ_COUNT);

/** NDEATH: bdSeq alone, and no sequence number. */
export function deathMessage(topics: SparkplugTopics, bdSeq: number, nowMs: number): SparkplugMessage {
  const out = new ProtoBytes();
  writeMetric(out, { name: BD_SEQ, timestamp: nowMs, type: INT64, hasDatatype: true, value: BigInt(bdSeq) });
  return { topic: nodeTopic(topics, "NDEATH"), payload: payloadOf(out.copy(), nowMs, undefined) };
}

/** Used within one call: nothing stays in it between two. */
const SCRATCH = new ProtoBytes();

/**
 * One Sparkplug session of the collector as an edge node, from its birth to its death. Each message gets the next sequence number when it is
 * made, so it is to be sent in that order. Has no input, no output and no clock of its own: times are epoch ms.
 */
export class EdgeNode {
  readonly topics: SparkplugTopics;
  readonly bdSeq: number;
  readonly #memory: NodeMemory;
  #seq = -1;

  constructor(topics: SparkplugTopics, bdSeq: number, memory: NodeMemory) {
    this.topics = topics;
    this.bdSeq = bdSeq;
    this.#memory = memory;
    memory.lastAlias = Math.max(memory.lastAlias, ALIAS.loss);
    for (const device of memory.devices.values()) endOf(device);
  }

  /** Its birth is sent. */
  get isBorn(): boolean {
    return this.#seq >= 0;
  }

  get devices(): Iterable<Device> {
    return this.#memory.devices.values();
  }

  /** The device with this identifier; a new one where there is none. */
  device(id: string): Device {
    const known = this.#memory.devices.get(id);
    if (known) return known;
    const made = new Device(id, () => ++this.#memory.lastAlias);
    this.#memory.devices.set(id, made);
    return made;
  }

  /** Its source is not configured any more, and nothing of it is left to send. */
  forget(device: Device): void {
    this.#memory.devices.delete(device.id);
  }

  /** NBIRTH; every device is to be born again after it. */
  birth(nowMs: number): SparkplugMessage {
    this.#seq = -1;
    for (const device of this.devices) endOf(device);
    const metrics: readonly Metric[] = [
      { name: BD_SEQ, type: INT64, value: BigInt(this.bdSeq) },
      // Without an alias: 3.0, 5.14.
      { name: REBIRTH, type: BOOLEAN, value: false },
      { name: REFUSED, alias: ALIAS.refused, type: INT64, value: BigInt(this.#memory.refusedCommands) },
      { name: LOSS, alias: ALIAS.loss, type: STRING, value: this.#memory.lastLoss },
    ];
    return this.#node(
      "NBIRTH",
      metrics.map((metric) => ({ ...metric, timestamp: nowMs, hasDatatype: true })),
      nowMs,
    );
  }

  /** NDATA with how many metrics of commands were refused. */
  refusedData(nowMs: number): SparkplugMessage {
    const value = BigInt(this.#memory.refusedCommands);
    return this.#node("NDATA", [{ alias: ALIAS.refused, timestamp: nowMs, type: INT64, value }], nowMs);
  }

  /** NDATA with a loss, as JSON. */
  lossData(loss: string, nowMs: number): SparkplugMessage {
    this.#memory.lastLoss = loss;
    return this.#node("NDATA", [{ alias: ALIAS.loss, timestamp: nowMs, type: STRING, value: loss }], nowMs);
  }

  /** Bytes of the DBIRTH that this device would have now, at most. */
  birthBytes(device: Device, nowMs: number): number {
    this.#writeBirth(device, nowMs);
    return SCRATCH.length + HEAD_BYTES;
  }

  /** DBIRTH: every metric with name, alias, type and current value. */
  deviceBirth(device: Device, nowMs: number): SparkplugMessage {
    this.#writeBirth(device, nowMs);
    device.isBorn = true;
    device.isAlive = true;
    device.wasRead = device.isRead;
    for (const metric of device.metrics) metric.sentQuality = device.stateAtBirth(metric).quality;
    return this.#deviceMessage("DBIRTH", device, SCRATCH.copy(), nowMs);
  }

  deviceDeath(device: Device, nowMs: number): SparkplugMessage {
    endOf(device);
    return this.#deviceMessage("DDEATH", device, new Uint8Array(), nowMs);
  }

  /** DDATA. The device is born. */
  deviceData(device: Device, metrics: Uint8Array, nowMs: number): SparkplugMessage {
    return this.#deviceMessage("DDATA", device, metrics, nowMs);
  }

  /**
   * The readings of a batch as the contents of DDATA messages, each of at most `maxBytes()` with time and sequence number. What is not newer
   * than everything sent of the device is historical. A device whose metrics change by it is to be born again first.
   */
  *dataOf(batch: SinkBatch, device: Device, maxBytes: () => number): Generator<DataPart, undefined> {
    const places = device.placesOf(batch.layout, !batch.backlog);
    const out = SCRATCH;
    out.start();
    let values = 0;
    let most = maxBytes() - HEAD_BYTES;
    for (const { time, readings } of batch.readouts) {
      const isHistorical = batch.backlog || (time < device.newestMs && device.newestMs - time <= SET_BACK_MS);
      if (!isHistorical) device.newestMs = time;
      for (let place = 0; place < readings.length; place++) {
        const [reading, metric] = [readings[place], places[place]];
        if (reading === undefined || metric === undefined) continue;
        const state = stateOf(metric.type, reading);
        const properties = propertiesOf(state.quality, metric.sentQuality, state.why);
        const one: Metric = { alias: metric.alias, timestamp: time, type: metric.type, isHistorical, properties, value: state.value };
        if (!isHistorical) metric.sentQuality = state.quality;
        if (!isHistorical || !metric.last || time >= metric.last.time)
          metric.last = { value: state.value, quality: state.quality, why: state.why, time };
        let at = out.length;
        writeMetric(out, one);
        if (out.length > most && values > 0) {
          out.rewind(at);
          yield { metrics: out.copy(), values };
          out.start();
          values = 0;
          most = maxBytes() - HEAD_BYTES;
          at = 0;
          writeMetric(out, one);
        }
        if (out.length <= most) values++;
        else {
          out.rewind(at);
          yield { tooLarge: 1 };
          out.start();
          most = maxBytes() - HEAD_BYTES;
        }
      }
    }
    if (values > 0) yield { metrics: out.copy(), values };
  }

  /** A command from outside: Rebirth is obeyed, everything else is refused and counted. Never throws. */
  command(topic: string, payload: Uint8Array): CommandOutcome {
    const isOfNode = topic === nodeTopic(this.topics, "NCMD");
    const command = readCommand(payload);
    const refused = command?.metrics.filter(({ name, boolean }) => !(isOfNode && name === REBIRTH && boolean === true)) ?? [];
    const isRebirth = command !== undefined && refused.length < command.metrics.length;
    // A command that cannot be read, or asks for nothing, counts as one.
    const count = command === undefined || (refused.length === 0 && !isRebirth) ? 1 : refused.length + command.more;
    this.#memory.refusedCommands += count;
    return { isRebirth, refused: count, names: refused.slice(0, MAX_NAMES).map(({ name, alias }) => name ?? `alias ${alias}`) };
  }

  get refusedCommands(): number {
    return this.#memory.refusedCommands;
  }

  #writeBirth(device: Device, nowMs: number): void {
    SCRATCH.start();
    for (const metric of device.metrics) {
      const { name, alias, type, about } = metric;
      const { value, quality, why, time = nowMs } = device.stateAtBirth(metric);
      const properties = { Quality: quality, ...why, ...about };
      writeMetric(SCRATCH, { name, alias, timestamp: time, type, hasDatatype: true, properties, value });
    }
  }

  #node(verb: "NBIRTH" | "NDATA", metrics: readonly Metric[], nowMs: number): SparkplugMessage {
    SCRATCH.start();
    for (const metric of metrics) writeMetric(SCRATCH, metric);
    return { topic: nodeTopic(this.topics, verb), payload: payloadOf(SCRATCH.copy(), nowMs, this.#next()) };
  }

  #deviceMessage(verb: "DBIRTH" | "DDATA" | "DDEATH", device: Device, metrics: Uint8Array, nowMs: number): SparkplugMessage {
    return { topic: deviceTopic(this.topics, verb, device.id), payload: payloadOf(metrics, nowMs, this.#next()) };
  }

  #next(): number {
    this.#seq = (this.#seq + 1) % SEQ_COUNT;
    return this.#seq;
  }
}

function endOf(device: Device): void {
  device.isBorn = false;
  device.isAlive = false;
}

/** Said only where a host would take it otherwise: for good, unless it was not before. */
function propertiesOf(quality: number, sentQuality: number, why: Properties | undefined): Properties | undefined {
  return quality === GOOD && sentQuality === GOOD ? undefined : { Quality: quality, ...why };
}
