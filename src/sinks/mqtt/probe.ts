import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import { formatBytes } from "../../base/bytes.ts";
import type { Context } from "../../model/context.ts";
import { ReasonError } from "../../model/reason.ts";
import { peerWords } from "../lib/tls.ts";
import type { ProbeOutcome, ProbeTell } from "../sink.ts";
import { type Connection, type ConnectOptions, connectMqtt } from "./connect.ts";
import { openWay } from "./way.ts";

export interface ProbeOptions {
  /** Options with which the sink connects; the client id is another one. */
  readonly connect: Omit<ConnectOptions, "will">;
  /** Topic on which the right to publish is tried; undefined: it is not tried. */
  readonly topic: string | undefined;
}

/**
 * Walks the way to a broker from the connection on: TLS, CONNECT with a client id of its own, so that the service keeps its connection, and one
 * empty message that is not retained. Tells each step. Throws ReasonError at the step that fails.
 */
export async function probeBroker({ connect, topic }: ProbeOptions, tell: ProbeTell, ctx: Context): Promise<void> {
  if (connect.tls) await tell("tls", async () => ({ result: "ok", detail: await tlsWords(connect, ctx) }));
  const clientId = `collector-probe-${randomUUID().slice(0, 8)}`;
  let connection: Connection | undefined;
  try {
    await tell("log-in", async () => {
      connection = await connectMqtt({ ...connect, clientId }, ctx);
      return { result: "ok", detail: `${connackWords(connection)}; asked as the client ${clientId}` };
    });
    await tell("publish", async () => (connection && topic !== undefined ? await tryTopic(connection, topic) : NOT_TRIED));
  } finally {
    await connection?.close();
  }
}

const NOT_TRIED = { result: "unknown", detail: "the right to publish is not tried with this payload" } as const;

/** Says whose certificate the server has; what is wrong with one is thrown by the handshake. */
async function tlsWords(connect: ProbeOptions["connect"], ctx: Context): Promise<string> {
  const socket: Duplex = await openWay({ ...connect, websocketPath: undefined }, ctx);
  const words = peerWords(socket);
  socket.on("error", () => {}).destroy();
  return words;
}

const connackWords = ({ version, window, maxPacketBytes, canRetain }: Connection): string =>
  [
    `MQTT ${version === 5 ? "5" : "3.1.1"}: the broker lets the collector in`,
    `packets of up to ${formatBytes(maxPacketBytes)}`,
    `${window} publishes at once`,
    canRetain ? "it keeps retained messages" : "it keeps no retained messages",
  ].join(", ");

/** MQTT 5.0, 3.4.2.1: a broker answers a publish that it does not take with a code; one of MQTT 3.1.1 has no word for that. */
async function tryTopic(connection: Connection, topic: string): Promise<ProbeOutcome> {
  const outcome = await connection.publish(topic, "", false);
  if (outcome.type !== "accepted")
    throw new ReasonError("UNKNOWN", `an empty message on ${topic} is refused: ${outcome.detail}`, {
      condition: "server_refuses",
      nextStep: `Give the user of this sink the right to publish on ${topic.slice(0, topic.lastIndexOf("/"))}/# and on the topic of its values, in the broker's own rules; a rule by client id does not fit the client of this probe.`,
    });
  return connection.version === 5
    ? { result: "ok", detail: `an empty message on ${topic} is taken` }
    : { result: "unknown", detail: `MQTT 3.1.1 does not say whether a message on ${topic} is taken: the broker's log does` };
}
