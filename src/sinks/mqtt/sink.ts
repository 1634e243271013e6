import { createHash } from "node:crypto";
import * as z from "zod";
import type { Context } from "../../model/context.ts";
import { parseDuration } from "../../model/duration.ts";
import { ReasonError } from "../../model/reason.ts";
import { defaultClientId, type MqttDetails, SINK_DETAILS } from "../../model/sink-details.ts";
import { publishIntervalMs } from "../lib/publish-interval.ts";
import { defineSink, type OpenInput, type Refusal, type Sink, type SinkBatch, type WriteResult } from "../sink.ts";
import { type Connection, connectMqtt, type PublishOutcome } from "./connect.ts";
import { type Message, type MessageOptions, writeBatch, writeEach, writeGap } from "./message.ts";
import { type Retained, retainedOf } from "./retained.ts";
import { createSizeLimit, partOf, partsWithin, wholeOf } from "./smaller.ts";
import { createBeside } from "./status-channel.ts";
import { collectorStatusTopic, dataTopic, gapTopic, parseTopic, type TopicPlan } from "./topics.ts";

const duration = (fallback: string, minMs: number, maxMs: number, range: string) =>
  z
    .string()
    .refine((text) => {
      const ms = parseDuration(text);
      return ms !== undefined && ms >= minMs && ms <= maxMs;
    }, `expected a duration such as 10s or 500ms, ${range}`)
    .default(fallback)
    .transform((text) => parseDuration(text) ?? minMs);

const pemFile = (about: string) =>
  z.string().startsWith("/", "expected an absolute path").max(4096).optional().describe(`${about} (PEM, absolute path)`);

const settings = z.strictObject({
  username: z.string().min(1).optional().describe("User name at the broker"),
  password_file: z.string().min(1).optional().describe("File that holds the password at the broker, one line"),
  tls: z
    .strictObject({
      ca_file: pemFile("Certificates of the authorities to trust; absent: those that Node knows"),
      cert_file: pemFile("Certificate of this collector, for brokers that ask for one"),
      key_file: pemFile("Key of that certificate, without a passphrase"),
      server_name: z.string().min(1).max(253).optional().describe("Name that the broker's certificate has to hold; absent: host"),
    })
    .refine((tls) => (tls.cert_file === undefined) === (tls.key_file === undefined), "cert_file and key_file go together; set both or none")
    .optional()
    .describe("TLS 1.2 or later, with the broker's certificate and name checked; `tls: {}` is enough for a public authority"),
  connect_timeout: duration("5s", 1, 60_000, "at most 1min").describe(
    "Deadline of the name look-up, of the TCP connect and of the broker's answer, each",
  ),
  publish_timeout: duration("10s", 1, 600_000, "at most 10min").describe(
    "Deadline of one publish; a broker that has not acknowledged it by then is connected to anew",
  ),
  keepalive: duration("30s", 1000, 65_535_000, "from 1s to 65535s").describe("A ping is sent after this time without another packet"),
  in_flight: z
    .int()
    .min(1)
    .max(64)
    .default(16)
    .describe("Publishes under way at once, 1 to 64; the broker's receive maximum wins where it is lower"),
  max_packet_bytes: z
    .int()
    .min(1024)
    .max(268_435_455)
    .optional()
    .describe("Largest publish that the broker takes, for one that closes on larger ones without a word; absent: as the broker says"),
  int64: z
    .enum(["number", "string"])
    .default("number")
    .describe("How 64-bit integers are written: as JSON numbers with all digits, or as strings for readers that lose digits above 2^53"),
});

export type MqttSettings = z.infer<typeof settings>;

/** Larger payloads are split between their readouts: brokers with a limit of their own seldom have a lower one. */
const SPLIT_BYTES = 131_072;
/** Fixed header, packet identifier and properties of a PUBLISH, generously (MQTT 5.0, 3.3). */
const PUBLISH_OVERHEAD_BYTES = 32;
/** What moves by itself in a status (last readout, next try) is published at most this often. */
const REFRESH_MS = 10_000;
const OFFLINE_TIMEOUT_MS = 500;
const MAX_WARNINGS = 10;

const ONLINE = '{"state":"online"}';
const OFFLINE = '{"state":"offline"}';

export default defineSink<MqttDetails, MqttSettings>({
  type: "mqtt",
  title: "MQTT 5 and 3.1.1",
  details: SINK_DETAILS.mqtt.read,
  settings,
  closedSoonHint: "another client may use the same client_id; give each its own",
  delivery: "every",
  takesExploration: false,
  endpoint: ({ host, port }) => `${host}:${port}`,
  publishIntervalMs: ({ publish_interval }, unit) => publishIntervalMs(publish_interval, unit),
  async open(input, ctx) {
    const plan = parseTopic(input.details.topic);
    const connection = await connectMqtt(connectOptions(input, plan), ctx);
    try {
      return await openSink(connection, plan, input);
    } catch (error) {
      await connection.close();
      throw error;
    }
  },
});

function connectOptions({ uuid, details, settings: local, secrets, remembered }: OpenInput<MqttDetails, MqttSettings>, plan: TopicPlan) {
  return {
    host: details.host,
    port: details.port,
    clientId: details.client_id ?? defaultClientId(uuid),
    username: local.username,
    password: secrets["password"],
    tls: local.tls,
    connectTimeoutMs: local.connect_timeout,
    publishTimeoutMs: local.publish_timeout,
    keepaliveS: Math.round(local.keepalive / 1000),
    window: local.in_flight,
    will: { topic: collectorStatusTopic(plan), payload: OFFLINE },
    ...(remembered && { remembered }),
  };
}

async function openSink(
  connection: Connection,
  plan: TopicPlan,
  { settings: local, leftBehind, unwelcome = new Map() }: OpenInput<MqttDetails, MqttSettings>,
): Promise<Sink> {
  /** Publishes of values that are not acknowledged. */
  let valuesUnderWay = 0;
  const beside = createBeside(connection, unwelcome, () => valuesUnderWay);
  /** Status and metadata are published. */
  const tellsStatus = connection.canRetain && beside.barred === undefined;
  /** By topic: what was published, as digests, because metadata are as large as the configuration. */
  const published = new Map<string, Retained & { readonly atMs: number }>();
  const warnings = [...warningsOf(connection), ...(beside.barred === undefined ? [] : [beside.barred])];
  const maxPacketBytes = Math.min(connection.maxPacketBytes, local.max_packet_bytes ?? connection.maxPacketBytes);
  const payloadBytes = (topic: string): number => maxPacketBytes - Buffer.byteLength(topic) - PUBLISH_OVERHEAD_BYTES;
  const limit = createSizeLimit(SPLIT_BYTES);
  const messageOptions = (topic: string, wantedBytes = SPLIT_BYTES): MessageOptions => {
    const maxBytes = payloadBytes(topic);
    const splitBytes = Math.min(wantedBytes, limit.bytes(), maxBytes);
    return { int64: local.int64, maxBytes, splitBytes, partBytes: splitBytes < Math.min(SPLIT_BYTES, maxBytes) ? splitBytes : maxBytes };
  };

  function* messagesOf(batch: SinkBatch, count: (tooLarge: number) => void): Generator<Message & { readonly topic: string }> {
    const { source, variables } = batch.layout;
    if (!plan.perVariable) {
      const topic = dataTopic(plan, source.name, "");
      const { messages, tooLarge } = writeBatch(batch, messageOptions(topic, batch.maxMessageBytes));
      count(tooLarge);
      for (const message of messages) yield { ...message, topic };
      return;
    }
    const topics = variables.map((variable) => dataTopic(plan, source.name, variable.name));
    const longest = topics.reduce((most, topic) => (Buffer.byteLength(topic) > Buffer.byteLength(most) ? topic : most), "");
    for (const message of writeEach(batch, messageOptions(longest)))
      if (message.fits) yield { ...message, topic: topics[message.place] ?? "" };
      else count(message.values);
  }

  /** By source and lane: settles once the batch before has handed over its last message, so that batches of several messages do not mix. */
  const turns = new Map<string, Promise<void>>();

  async function write(batch: SinkBatch, ctx: Context): Promise<WriteResult> {
    const key = `${batch.backlog && !batch.inOrder} ${batch.layout.source.uuid}`;
    const before = turns.get(key);
    let pass: () => void = () => {};
    const turn = new Promise<void>((done) => {
      pass = done;
    });
    turns.set(key, turn);
    try {
      await before;
      return await publishAll(batch, ctx, pass);
    } finally {
      pass();
      if (turns.get(key) === turn) turns.delete(key);
    }
  }

  const publishValues = async (topic: string, payload: Buffer): Promise<PublishOutcome> => {
    valuesUnderWay++;
    try {
      return await connection.publish(topic, payload, false);
    } finally {
      valuesUnderWay--;
    }
  };

  /** `handedOver` is called when nothing of the batch waits for its turn any more. */
  async function publishAll(batch: SinkBatch, ctx: Context, handedOver: () => void): Promise<WriteResult> {
    const refusals: Refusal[] = [];
    let refused = 0;
    let detail: string | undefined;
    const giveUp = (values: number, why: string): void => {
      refused += values;
      if (values > 0) detail ??= why;
    };
    const leftOut = (tooLarge: number): void =>
      giveUp(
        tooLarge,
        `a value of ${batch.layout.source.name} is larger than the ${maxPacketBytes} bytes that the broker takes; read shorter strings or arrays, or raise the limit of the broker`,
      );
    const publishOne = async (
      { topic, payload, values, parts: given }: Message & { readonly topic: string },
      id: string,
    ): Promise<void> => {
      if (ctx.signal.aborted) throw new ReasonError("CONNECTION_CLOSED", "stopped by the collector");
      const outcome = await publishValues(topic, payload);
      if (outcome.type === "accepted") return;
      if (outcome.type === "of_topic") return giveUp(values, outcome.detail);
      // Going over a batch decodes it: not before it has to be.
      const parts = given ?? wholeOf(batch);
      if (outcome.type === "refused" || values === 1) {
        refusals.push({ parts, detail: `${outcome.detail}; it was of ${batch.layout.source.name}` });
        return;
      }
      limit.tooLarge(payload.length);
      const smaller = partOf(batch, parts, id, payload.length >> 1);
      let number = 0;
      for (const message of messagesOf(smaller, leftOut))
        await publishOne({ ...message, parts: message.parts ? partsWithin(message.parts, parts) : parts }, `${id}.${++number}`);
    };
    const messages = messagesOf(batch, leftOut);
    let number = 0;
    const lane = async (): Promise<void> => {
      for (const message of messages) await publishOne(message, `${batch.id}.${++number}`);
      handedOver();
    };
    // One lane more than the window: it sees the end while the others wait for their acknowledgements.
    await Promise.all(Array.from({ length: connection.window + 1 }, lane));
    return { refused, ...(detail !== undefined && { detail }), ...(refusals.length > 0 && { refusals }) };
  }

  const warn = (warning: string): void => {
    if (warnings.length < MAX_WARNINGS && !warnings.includes(warning)) warnings.push(warning);
  };
  /** False: the broker refuses it. */
  const publishBeside = async (topic: string, payload: string, isRetained: boolean): Promise<boolean> => {
    const refusal = await beside.publish(topic, payload, isRetained);
    if (refusal !== undefined) warn(refusal);
    return refusal === undefined;
  };
  const retain = async (topic: string, payload: string): Promise<void> => {
    if (Buffer.byteLength(payload) > payloadBytes(topic)) {
      warn(`what ${topic} would hold is larger than the ${maxPacketBytes} bytes that the broker takes: it is not published`);
      return;
    }
    leftBehind.add(topic);
    await publishBeside(topic, payload, true);
  };
  const clear = async (topic: string): Promise<void> => {
    await beside.publish(topic, "", true);
    published.delete(topic);
    leftBehind.delete(topic);
  };

  if (tellsStatus) await retain(collectorStatusTopic(plan), ONLINE);
  return {
    inFlight: connection.window,
    warnings,
    lost: beside.lost,
    write,
    async describe(sources) {
      if (!tellsStatus) return;
      const wanted = retainedOf(plan, sources);
      const own = collectorStatusTopic(plan);
      for (const topic of leftBehind) if (topic !== own && !wanted.has(topic)) await clear(topic);
      for (const [topic, retained] of wanted) {
        const before = published.get(topic);
        const atMs = performance.now();
        const [key, payload] = [digest(retained.key), digest(retained.payload)];
        if (before && before.key === key && (before.payload === payload || atMs - before.atMs < REFRESH_MS)) continue;
        await retain(topic, retained.payload);
        published.set(topic, { key, payload, atMs });
      }
      beside.told();
    },
    async publishGap(gap) {
      return beside.barred === undefined && (await publishBeside(gapTopic(plan), writeGap(gap), false));
    },
    async forget() {
      for (const topic of leftBehind) await clear(topic);
    },
    async close() {
      if (tellsStatus && leftBehind.has(collectorStatusTopic(plan))) {
        const late = new Promise<void>((done) => setTimeout(done, OFFLINE_TIMEOUT_MS).unref());
        await Promise.race([connection.publish(collectorStatusTopic(plan), OFFLINE, true).catch(() => {}), late]);
      }
      await connection.close();
    },
  };
}

const digest = (text: string): string => createHash("sha256").update(text).digest("base64");

function warningsOf({ version, canRetain }: Connection): readonly string[] {
  return [
    ...(version === 4 ? ["the broker speaks MQTT 3.1.1: it does not say when it drops a publish for missing rights"] : []),
    ...(canRetain ? [] : ["the broker keeps no retained messages: there is no status and no metadata"]),
  ];
}
