import type { Context } from "../../model/context.ts";
import { isLossReason } from "../../model/loss.ts";
import { nameInCommand } from "../../model/name-in-command.ts";
import { proxyIn } from "../../model/proxy-address.ts";
import { ReasonError } from "../../model/reason.ts";
import type { LinkReport, SourceReport } from "../../model/report.ts";
import { defaultClientId, type MqttDetails, SINK_DETAILS, userSecretName, withWords } from "../../model/sink-details.ts";
import { type Warning, warning } from "../../model/warning.ts";
import { publishIntervalMs } from "../lib/publish-interval.ts";
import { hostPortOf } from "../lib/request-host.ts";
import { defineSink, type OlderBounds, type OpenInput, type PublishedLoss, type Sink, type SinkBatch, type WriteResult } from "../sink.ts";
import { type Connection, type ConnectOptions, connectMqtt } from "./connect.ts";
import { facts } from "./facts.ts";
import { linkReport, WRITES } from "./link-report.ts";
import { ManifestTopics } from "./manifest/topics.ts";
import { type MqttMemories, type MqttMemory, openMemory } from "./memory.ts";
import { writeLoss } from "./message.ts";
import { rateWarnings } from "./rate-warnings.ts";
import { openPreferred, SecondBroker } from "./second-broker.ts";
import { type Broker, brokerIn, fallbackNeed, type MqttSettings, proxyNeed, settingsSchema, topicNeed } from "./settings.ts";
import { openSparkplug } from "./sparkplug/sink.ts";
import { deviceId } from "./sparkplug/topics.ts";
import { StatusChannel } from "./status-channel.ts";
import { StatusTopics } from "./status-topics.ts";
import { TopicNotes } from "./topic-notes.ts";
import {
  collectorStatusTopic,
  collisionHint,
  dataTopic,
  escapeLevel,
  lossTopic,
  parseTopic,
  sourceStatusTopic,
  type TopicPlan,
} from "./topics.ts";
import { maxPayloadBytes, ValuePublisher } from "./values.ts";
import { openWay, type WayOptions } from "./way.ts";

export type Input = OpenInput<MqttDetails, MqttSettings, MqttMemories>;

const OFFLINE_TIMEOUT_MS = 500;

/** A limit that was too low for any message is believed for so long: the value that it was too low for may be gone. */
const TOO_LOW_MS = 600_000;

const OFFLINE = '{"state":"offline"}';

export default defineSink<MqttDetails, MqttSettings, MqttMemories>({
  ...facts,
  settings: settingsSchema,
  placeOf: ({ topic }, source, { name }) =>
    typeof topic === "string" ? `topic ${dataTopic(parseTopic(topic), { name: source, machine: "{machine}" }, name)}` : undefined,
  details: SINK_DETAILS.mqtt.read,
  closedSoon: {
    hint: (sink) => `another client may use the same client_id; give each its own: collector sink set ${sink} client_id=OTHER`,
    condition: "client_id_taken",
  },
  confirms: ({ qos, payload }) => qos === 1 && payload !== "sparkplug",
  settingsProblem: (settings, details) => topicNeed(settings, details.topic) ?? proxyNeed(settings) ?? fallbackNeed(settings, details),
  endpoint: ({ host, port }) => `${host}:${port}`,
  encryption: (_, { tls }) => (tls ? "TLS" : "none"),
  publishIntervalMs: ({ publish_interval }, unit) => publishIntervalMs(publish_interval, unit),
  openMemory,
  async open(input, ctx) {
    const { host, port } = input.details;
    const lonely = passwordWithoutUser(input);
    if (lonely) throw lonely;
    const memory = input.memory ?? openMemory({ folder: undefined, uuid: input.uuid, endpoint: `${host}:${port}`, log: ctx.log });
    const { settings } = input;
    const { payload } = settings;
    if (payload === "sparkplug")
      return await openSparkplug({ options: connectOptions(input, memory), identifiers: identifiersOf(input), memory, ...settings }, ctx);
    const opening = { input, settings: { ...settings, payload }, plan: planOf(input), ctx };
    const second = brokerIn(settings.fallback);
    return second ? await openOneOfTwo(opening, memory, second) : await openAt({ host, port }, { ...opening, memory });
  },
  async probe(input, tell, ctx) {
    const lonely = passwordWithoutUser(input);
    if (lonely) throw lonely;
    const { uuid, details, settings } = input;
    const memory = openMemory({ folder: undefined, uuid, endpoint: `${details.host}:${details.port}`, log: ctx.log });
    const isTried = settings.payload !== "sparkplug" && settings.qos === 1;
    const topic = isTried ? sourceStatusTopic(planOf(input), PROBE) : undefined;
    const { probeBroker } = await import("./probe.ts");
    await probeBroker({ connect: { ...connectOptions(input, memory), leastQos: isTried ? undefined : 0 }, topic }, tell, ctx);
  },
});

/** A word that no data source has; its status topic is where the right to publish is tried. */
const PROBE = "collector-probe";

/** The topics of a sink. Throws ReasonError. */
export function planOf({ collector, settings, details }: Pick<Input, "collector" | "settings" | "details">): TopicPlan {
  const words = { ...(collector !== undefined && { collector: escapeLevel(collector) }), ...settings.topic_words };
  return parseTopic(withWords(details.topic, words));
}

interface Opening {
  readonly input: Input;
  readonly settings: JsonSettings;
  readonly plan: TopicPlan;
  readonly ctx: Context;
}

interface OpenAt extends Opening {
  /** Memory of this broker. */
  readonly memory: MqttMemory;
  /** Absent: it is the first broker, or the only one. */
  readonly second?: SecondBroker;
}

async function openAt(broker: Broker, { input, settings, plan, memory, ctx, second }: OpenAt): Promise<MqttSink> {
  const will = { topic: collectorStatusTopic(plan), payload: OFFLINE };
  const leastQos = settings.qos === 0 ? 0 : undefined;
  const connection = await connectMqtt({ ...connectOptions(input, memory), ...broker, will, leastQos }, ctx);
  try {
    const { limitTooLow } = memory;
    const isSame = limitTooLow && maxPacketBytesOf(connection, settings) <= limitTooLow.maxPacketBytes;
    if (isSame && performance.now() < limitTooLow.untilMs) throw limitTooLow.reason;
    const sink = new MqttSink(connection, plan, settings, memory, second);
    await sink.announce();
    return sink;
  } catch (error) {
    await connection.close();
    throw error;
  }
}

async function openOneOfTwo(opening: Opening, memory: MqttMemories, broker: Broker): Promise<MqttSink> {
  const { input, settings, ctx } = opening;
  const { details } = input;
  const first = { host: details.host, port: details.port };
  const [firstName, secondName] = [hostPortOf(first), hostPortOf(broker)];
  return await openPreferred({
    memory: memory.preference,
    second: secondName,
    signal: ctx.signal,
    openFirst: (signal) => openAt(first, { ...opening, memory, ctx: { ...ctx, signal } }),
    openSecond: async (signal) => {
      const second = new SecondBroker({
        first: firstName,
        second: secondName,
        memory: memory.preference,
        returnAfterMs: settings.return_after,
        look: async (until) => {
          const way = await openWay(connectOptions(input, memory), { ...ctx, signal: until });
          way.on("error", () => {}).destroy();
        },
      });
      try {
        return await openAt(broker, { ...opening, memory: memory.ofSecond(secondName), ctx: { ...ctx, signal }, second });
      } catch (error) {
        second.stop();
        throw error;
      }
    },
  });
}

/** MQTT 3.1.1 has no such CONNECT (3.1.2.9), and under MQTT 5 hardly a broker takes one; undefined: it is not so. */
function passwordWithoutUser({ settings: { username }, secrets, ...sink }: Input): ReasonError | undefined {
  if (username !== undefined || secrets["password"] === undefined) return undefined;
  const name = nameInCommand(sink);
  return new ReasonError(
    "UNKNOWN",
    `there is a password for this sink, and no user: sudo collector sink set ${name} username=USER, or forget the password: sudo collector secret rm ${name}`,
    { condition: "configuration_invalid" },
  );
}

/** The edge node has the name of the client where no other is given: that is one of its own, too. */
function identifiersOf({ uuid, details, settings }: Input) {
  const { group_id: group, edge_node_id: given, primary_host_id: host } = settings;
  return { topics: { group, node: given ?? deviceId(details.client_id ?? defaultClientId(uuid)) }, host };
}

export function connectOptions({ uuid, name, details, settings: local, secrets }: Input, memory: MqttMemory): Omit<ConnectOptions, "will"> {
  return {
    host: details.host,
    port: details.port,
    clientId: details.client_id ?? defaultClientId(uuid),
    sink: nameInCommand({ uuid, name }),
    username: local.username,
    password: secrets["password"],
    ...proxyOf(local, secrets),
    tls: local.tls,
    websocketPath: local.websocket_path,
    connectTimeoutMs: local.connect_timeout,
    publishTimeoutMs: local.publish_timeout,
    keepaliveS: Math.round(local.keepalive / 1000),
    window: local.in_flight,
    remembered: memory.broker,
    connects: memory.connects,
    link: memory.link,
    rate: memory.rate,
  };
}

/** The proxy that the settings name, with its user's password. */
function proxyOf(local: MqttSettings, secrets: Input["secrets"]): Pick<WayOptions, "proxy" | "proxyPassword"> {
  const proxy = proxyIn(local);
  return { proxy, proxyPassword: proxy?.user === undefined ? undefined : secrets[userSecretName(proxy.user)] };
}
type JsonSettings = MqttSettings & { readonly payload: Exclude<MqttSettings["payload"], "sparkplug"> };

/** One connection to a broker: values, and beyond them status, metadata and losses as far as the broker takes them. */
class MqttSink implements Sink {
  readonly inFlight: number;
  /** Warnings about the whole connection. */
  readonly #ownWarnings: readonly Warning[];
  readonly #notes = new TopicNotes(() => this.#warningsChanged());
  #warningsChanged: () => void = () => {};
  readonly lost: Promise<Error>;
  readonly #connection: Connection;
  readonly #plan: TopicPlan;
  readonly #memory: MqttMemory;
  readonly #values: ValuePublisher;
  readonly #channel: StatusChannel;
  readonly #status: StatusTopics;
  /** Undefined: the settings want no manifest, or only values are published over this connection. */
  readonly #manifests: ManifestTopics | undefined;
  /** Status and metadata are published. */
  readonly #hasStatus: boolean;

  readonly #second: SecondBroker | undefined;
  readonly endpoint?: string;

  constructor(connection: Connection, plan: TopicPlan, local: JsonSettings, memory: MqttMemory, second?: SecondBroker) {
    this.#second = second;
    if (second) this.endpoint = second.endpoint;
    this.#connection = connection;
    this.#plan = plan;
    this.#memory = memory;
    const maxPacketBytes = maxPacketBytesOf(connection, local);
    this.#values = new ValuePublisher(connection, plan, {
      owners: memory.owners,
      int64: local.int64,
      payload: local.payload,
      compression: local.compression,
      timestamps: local.timestamps,
      qos: local.qos,
      retained: local.retain && connection.canRetain ? memory.retainedValues : undefined,
      held: memory.held,
      manifest: local.manifest ? memory.manifest() : undefined,
      holdMs: local.hold_refused,
      maxPacketBytes,
      limitTooLow: (reason) => {
        memory.limitTooLow = { reason, maxPacketBytes, untilMs: performance.now() + TOO_LOW_MS };
      },
    });
    this.#channel = new StatusChannel(connection, memory.suspension, () => this.#values.underWay());
    const { suspended } = this.#channel;
    this.#hasStatus = connection.canRetain && suspended === undefined;
    this.inFlight = WRITES * connection.window;
    const lost = this.#channel.lost.then((reason) => {
      memory.isSameBroker = reason.isOfLimit;
      return reason;
    });
    this.lost = second ? Promise.race([lost, second.returned]) : lost;
    const hint = collisionHint(plan);
    this.#ownWarnings = [
      ...warningsOf(connection, local, collectorStatusTopic(plan)),
      ...(hint === undefined
        ? []
        : [
            warning(
              "topics_may_collide",
              `topic: names of sources and variables may make the same topic twice, which is then refused; ${hint}`,
            ),
          ]),
      ...(suspended === undefined ? [] : [warning("status_suspended", suspended)]),
    ];
    // A broker that ended the connection itself, and said that it was for the rate, has kept what it had.
    if (!memory.isSameBroker) memory.published.clear();
    memory.isSameBroker = false;
    const maxBytes = (topic: string): number => maxPayloadBytes(topic, maxPacketBytes);
    if (local.manifest && suspended === undefined)
      this.#manifests = new ManifestTopics({
        manifest: memory.manifest(),
        plan,
        channel: this.#channel,
        connection,
        notes: this.#notes,
        maxBytes,
        retains: (topic) => memory.retained.add(topic),
      });
    this.#status = new StatusTopics(this.#channel, plan, memory.retained, {
      maxBytes,
      manifests: this.#manifests,
      notes: this.#notes,
      maxPacketBytes,
      values: memory.retainedValues,
      retainsValues: local.retain,
      link: connection.link,
      ownsName: (source) => memory.owners.ownsName(source),
      published: memory.published,
      discovery: local.home_assistant === undefined ? undefined : { prefix: local.home_assistant, payload: local.payload },
    });
  }

  get warnings(): readonly Warning[] {
    return [
      ...(this.#second ? [this.#second.warning()] : []),
      ...this.#ownWarnings,
      ...rateWarnings(this.#memory.rate),
      ...this.#notes.warnings(),
      ...this.#memory.owners.warnings(this.#plan),
      ...this.#status.warnings(),
    ];
  }

  watchWarnings(changed: () => void): void {
    this.#memory.rate.watch(changed);
    this.#warningsChanged = changed;
  }

  link(): LinkReport {
    return linkReport(this.#connection.link, this.#memory.rate);
  }

  /** A batch that has begun when the connection is lost comes twice: it is no larger than what is under way. */
  older(): OlderBounds {
    return { writes: this.#connection.window, bytes: this.#connection.link.state().windowBytes };
  }

  /** Publishes the collector's own status. Throws ReasonError when the connection is lost. */
  async announce(): Promise<void> {
    if (this.#hasStatus) await this.#status.announce();
  }

  write(batch: SinkBatch, ctx: Context): Promise<WriteResult> {
    return this.#values.write(batch, ctx);
  }

  async describe(sources: readonly SourceReport[]): Promise<void> {
    this.#memory.owners.describe(sources);
    await this.#manifests?.publishDue();
    if (!this.#hasStatus) return;
    await this.#status.describe(sources);
    this.#channel.published();
  }

  async publishLoss(loss: PublishedLoss): Promise<boolean> {
    if (this.#manifests && isLossReason(loss.reason)) this.#memory.manifest().lost(loss);
    if (this.#channel.suspended !== undefined) return false;
    const topic = lossTopic(this.#plan);
    const refusal = await this.#channel.publish(topic, writeLoss(loss), false);
    if (refusal === undefined) this.#notes.accepted(topic);
    else this.#notes.refused(topic, refusal, performance.now());
    return refusal === undefined;
  }

  async forget(): Promise<void> {
    await this.#status.clearAll();
  }

  async close(): Promise<void> {
    this.#second?.stop();
    const topic = collectorStatusTopic(this.#plan);
    const late = new Promise<void>((done) => setTimeout(done, OFFLINE_TIMEOUT_MS).unref());
    const last = this.#manifests?.publishLast().catch(() => {});
    if (last) await Promise.race([last, late]);
    if (this.#hasStatus && this.#memory.retained.has(topic))
      await Promise.race([this.#connection.publish(topic, OFFLINE, true).catch(() => {}), late]);
    await this.#connection.close();
  }
}

const maxPacketBytesOf = ({ maxPacketBytes }: Connection, { max_packet_bytes: most = maxPacketBytes }: JsonSettings): number =>
  Math.min(maxPacketBytes, most);

function warningsOf({ version, canRetain, refusedWill }: Connection, { payload, retain }: MqttSettings, will: string): readonly Warning[] {
  return [
    ...(refusedWill === undefined
      ? []
      : [
          warning(
            "will_refused",
            `the broker takes the connection without the last will to ${will} alone, so that others do not see where the collector vanishes; ${refusedWill}`,
            will,
          ),
        ]),
    ...(version === 4
      ? [warning("broker_is_old", "the broker speaks MQTT 3.1.1: it does not say when it drops a publish for missing rights")]
      : []),
    ...(version === 4 && payload === "raw"
      ? [warning("raw_without_quality", "the broker speaks MQTT 3.1.1: raw values come without quality, time and unit")]
      : []),
    ...(canRetain
      ? []
      : [
          warning(
            "retain_unsupported",
            `the broker keeps no retained messages: status and metadata are not published${retain ? ", and values are not retained" : ""}`,
          ),
        ]),
  ];
}
