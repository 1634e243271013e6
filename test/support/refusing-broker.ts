import type { Socket } from "node:net";
import { reset } from "../../simulators/reset.ts";
import { connack4, connack5, puback, type RawBroker, type RawPacket, startRawBroker, versionOf } from "./raw-broker.ts";

/** What a broker does about a publish instead of taking it. Codes: MQTT 5.0, 2.4; `closes`: a FIN follows the answer, `afterMs` later. */
export type Refusal =
  | { readonly how: "puback"; readonly code: number; readonly closes?: boolean; readonly afterMs?: number }
  | { readonly how: "disconnect"; readonly code: number }
  | { readonly how: "fin" | "reset" | "silence" };

export interface Publish {
  readonly topic: string;
  readonly payload: string;
  /** Topic, packet identifier, properties and payload. */
  readonly bytes: number;
}

export interface RefusingBroker extends RawBroker {
  /** Publishes of values that it took, in order. */
  readonly taken: readonly Publish[];
  /** Publishes of values that it did not take. */
  readonly refused: readonly Publish[];
  /** Publishes of values that it acknowledged under 3.1.1 and did not take. */
  swallowed(): number;
  /** Every value that it took, as `source/readout time/variable`, and how often. */
  values(): ReadonlyMap<string, number>;
  /** Replaces what is refused; undefined: nothing. */
  refuse(next: (publish: Publish) => Refusal | undefined): void;
}

const CONNECT = 1;
const PUBLISH = 3;
const PINGREQ = 12;

/** What a broker speaks: 3.1.1 alone, 5 alone, or what it is asked for. */
export type BrokerVersion = 4 | 5 | "both";

/**
 * A broker on 127.0.0.1 that takes all but the publishes of values for which `refuse` says how they are refused. `onTaken` gets what it takes
 * instead of `taken`, and nothing else is kept: for more than one wants to keep. In 3.1.1 an acknowledgement has no code: what is refused by
 * one is acknowledged, and not taken.
 */
export async function startRefusingBroker(
  version: BrokerVersion,
  refuse: (publish: Publish) => Refusal | undefined,
  onTaken?: (publish: Publish) => void,
): Promise<RefusingBroker> {
  const taken: Publish[] = [];
  const refused: Publish[] = [];
  let refusalOf = refuse;
  let swallowed = 0;
  const asked = new WeakMap<Socket, number>();
  const versionAt = (socket: Socket): number => (version === "both" ? (asked.get(socket) ?? 5) : version);
  const onPublish = (packet: RawPacket, socket: Socket): void => {
    if (socket.writableEnded || socket.destroyed) return;
    const publish = publishOf(packet, versionAt(socket));
    const isOfValues = publish.payload.includes('"readouts"');
    const refusal = isOfValues ? refusalOf(publish) : undefined;
    if (isOfValues && onTaken && !refusal) onTaken(publish);
    else if (isOfValues && !onTaken) (refusal ? refused : taken).push(publish);
    if (refusal?.how === "puback" && versionAt(socket) !== 5) swallowed++;
    if (!refusal) socket.write(puback(packet));
    else act(refusal, packet, socket, versionAt(socket) === 5);
  };
  const answer = (packet: RawPacket, socket: Socket): void => {
    if (packet.type === CONNECT) asked.set(socket, versionOf(packet));
    if (packet.type === CONNECT && version === 4 && versionOf(packet) === 5) socket.end(connack4(1));
    else if (packet.type === CONNECT) socket.write(versionAt(socket) === 5 ? connack5(0) : connack4(0));
    else if (packet.type === PINGREQ) socket.write(Buffer.from([0xd0, 0]));
    else if (packet.type === PUBLISH) onPublish(packet, socket);
  };
  const broker = await startRawBroker(answer, { keepsPackets: !onTaken });
  return {
    ...broker,
    taken,
    refused,
    swallowed: () => swallowed,
    values: () => countValues(taken),
    refuse(next) {
      refusalOf = next;
    },
  };
}

function act(refusal: Refusal, packet: RawPacket, socket: Socket, hasCodes: boolean): void {
  switch (refusal.how) {
    case "puback":
      socket.write(hasCodes ? puback(packet, refusal.code) : puback(packet));
      if (refusal.closes && refusal.afterMs !== undefined) setTimeout(() => socket.end(), refusal.afterMs).unref();
      else if (refusal.closes) socket.end();
      return;
    case "disconnect":
      socket.end(Buffer.from([0xe0, 2, refusal.code, 0]));
      return;
    case "fin":
      socket.end();
      return;
    case "reset":
      reset(socket);
      return;
    case "silence":
      return;
  }
}

/** MQTT 5.0, 3.3: topic, packet identifier, length of the properties (none are sent), payload. */
function publishOf({ body }: RawPacket, version: number): Publish {
  const topicEnd = 2 + body.readUInt16BE(0);
  const payload = body.subarray(topicEnd + 2 + (version === 5 ? 1 : 0)).toString();
  return { topic: body.subarray(2, topicEnd).toString(), payload, bytes: body.length };
}

interface Payload {
  readonly source: string;
  readonly readouts: readonly { readonly ts: string; readonly values: Readonly<Record<string, unknown>> }[];
}

function countValues(publishes: readonly Publish[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { payload } of publishes) {
    const { source, readouts } = JSON.parse(payload) as Payload;
    for (const { ts, values } of readouts)
      for (const name of Object.keys(values)) {
        const key = `${source}/${Date.parse(ts)}/${name}`;
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
  }
  return counts;
}
