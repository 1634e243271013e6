import * as z from "zod";
import { parseDuration } from "../../base/duration.ts";
import { hostProblem } from "../../model/host.ts";
import { parseProxy } from "../../model/proxy-address.ts";
import { passwordNetworksSchema } from "../../model/settings.ts";
import { placeholdersOf } from "../../model/sink-details.ts";
import { COMPRESSIONS, compressionProblem } from "./compression.ts";
import { idProblem } from "./sparkplug/topics.ts";
import { OWN_PLACEHOLDERS } from "./topics.ts";

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

const sparkplugId = z.string().check(({ value, issues }) => {
  const message = idProblem(value);
  if (message !== undefined) issues.push({ code: "custom", message, input: value });
});

/** Local options of an MQTT sink. */
export const settingsSchema = z.strictObject({
  username: z.string().min(1).optional().describe("User name at the broker"),
  password_file: z.string().min(1).optional().describe("File that holds the password at the broker, one line"),
  password_networks: passwordNetworksSchema,
  tls: z
    .strictObject({
      ca_file: pemFile("Certificates of the authorities to trust; absent: those that Node and the system know"),
      cert_file: pemFile("Certificate of this collector, for brokers that ask for one"),
      key_file: pemFile("Key of that certificate, without a passphrase"),
      alpn: z
        .string()
        .min(1)
        .max(255)
        .optional()
        .describe("Application protocol to ask for (ALPN), where brokers share port 443: such as mqtt or x-amzn-mqtt-ca"),
      server_name: z.string().min(1).max(253).optional().describe("Name that the broker's certificate has to hold; absent: host"),
    })
    .refine((tls) => (tls.cert_file === undefined) === (tls.key_file === undefined), "cert_file and key_file go together; set both or none")
    .optional()
    .describe("TLS 1.2 or later, with the broker's certificate and name checked; `tls: {}` is enough for a public authority"),
  websocket_path: z
    .string()
    .regex(/^\/[\x21-\x22\x24-\x7e]*$/, "expected a path that begins with /, such as /mqtt, without blanks and #")
    .max(2000)
    .optional()
    .describe(
      "Path of MQTT over WebSocket, mostly /mqtt, where the broker's port is one of a web server (with tls: wss); absent: MQTT over TCP",
    ),
  proxy: z
    .string()
    .max(2000)
    .check((context) => {
      const parsed = parseProxy(context.value);
      if ("problem" in parsed) context.issues.push({ code: "custom", message: parsed.problem, input: "" });
    })
    .optional()
    .describe(
      "Proxy on the way to the broker, by HTTP CONNECT or SOCKS5: http://USER@proxy.example:3128, socks5://proxy.example:1080; its password is the secret NAME/users/USER",
    ),
  fallback: z
    .string()
    .refine((text) => brokerIn(text) !== undefined, "expected host:port of the second broker, such as broker2.example:8883")
    .optional()
    .describe(
      "Second broker, host:port: used while the first, host and port of the data sink, cannot be opened; user, password, tls, websocket_path and proxy are those of the first",
    ),
  return_after: duration("3min", 1000, 86_400_000, "from 1s to 24h").describe(
    "While the second broker is used: how often the collector looks whether the first can be reached again",
  ),
  connect_timeout: duration("5s", 1, 60_000, "at most 1min").describe(
    "Deadline of the name look-up, of the TCP connect, of the answers of a proxy, of the TLS and WebSocket handshakes and of the broker's answer, each",
  ),
  publish_timeout: duration("10s", 1, 600_000, "at most 10min").describe(
    "The connection to a broker that acknowledges nothing for so long is closed and opened again; on a slow link later, by what a large publish needs",
  ),
  keepalive: duration("30s", 1000, 65_535_000, "from 1s to 65535s").describe("A ping is sent after this time without another packet"),
  in_flight: z
    .int()
    .min(1)
    .max(64)
    .default(16)
    .describe("Publishes under way at once, 1 to 64; the broker's receive maximum wins where it is lower"),
  max_publishes_per_s: z
    .int()
    .min(1)
    .max(50_000)
    .optional()
    .describe(
      "Publishes a second at most; absent: as many as the broker accepts, which is learned where it refuses some for their rate, and kept over restarts",
    ),
  max_packet_bytes: z
    .int()
    .min(1024)
    .max(268_435_455)
    .optional()
    .describe("Largest publish that the broker takes, for one that closes on larger ones without a word; absent: as the broker says"),
  qos: z
    .union([z.literal(0), z.literal(1)])
    .default(1)
    .describe(
      "1: a value counts as delivered once the broker acknowledges it. 0: values are sent without that, also to a broker that takes no more, and the ledger counts them as unconfirmed",
    ),
  hold_refused: duration("10min", 0, 86_400_000, "at most 24h").describe(
    "How long values are held that the broker refuses for missing rights (code 135) or for trouble of its own (128, 131), before any is dropped; 0s drops them at once",
  ),
  int64: z
    .enum(["number", "string"])
    .default("number")
    .describe("How 64-bit integers are written: as JSON numbers with all digits, or as strings for readers that lose digits above 2^53"),
  payload: z
    .enum(["envelope", "columns", "rows", "value", "raw", "sparkplug"])
    .default("envelope")
    .describe(
      "What a message holds: the readouts of a source with all that is known of them; the same with the names once and values as arrays; a list of rows of one value each; one value as JSON with time, quality and unit; the bare value, with those as user properties; or messages of Sparkplug B 3.0, on the topics of Sparkplug. value and raw need a topic with {variable}",
    ),
  group_id: sparkplugId
    .refine((id) => id !== "STATE", "STATE is the topic of host applications; choose another group")
    .default("collector")
    .describe("With payload: sparkplug, the Group ID: one level of the topics"),
  edge_node_id: sparkplugId
    .optional()
    .describe(
      "With payload: sparkplug, the Edge Node ID: one level of the topics, which no other edge node of the group has; absent: the client_id",
    ),
  primary_host_id: sparkplugId
    .optional()
    .describe(
      "With payload: sparkplug, the Host ID of the primary host application: values wait while it is offline; absent: they do not wait",
    ),
  compression: z
    .enum(COMPRESSIONS)
    .default("none")
    .describe("How payloads of envelope, columns and rows are compressed; MQTT 5 says which in the content type"),
  topic_words: z
    .record(
      z.string().regex(/^[a-z][a-z0-9_]{0,30}$/, "expected a word of a-z, 0-9 and _"),
      z
        .string()
        .min(1)
        .max(1000)
        .regex(/^[^+#{}]*$/, "a topic holds no +, # or braces"),
    )
    .optional()
    .describe("Texts for words of your own in the topic, such as `site: plant-7` for {site}"),
  home_assistant: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[^+#{}$]+[^+#{}$/]$/, "expected a topic prefix such as homeassistant")
    .optional()
    .describe("Topic prefix under which Home Assistant looks for devices (MQTT discovery): each variable becomes an entity there"),
  timestamps: z
    .enum(["iso", "epoch_ms"])
    .default("iso")
    .describe("How times are written in rows: ISO 8601 in UTC with three digits, or as a number of milliseconds since 1970"),
  manifest: z
    .boolean()
    .default(false)
    .describe(
      "Whether the sink publishes, for each source, what the broker has acknowledged of the last 60 minutes, for `collector verify`; needs qos: 1 and payload envelope, columns or rows",
    ),
  retain: z
    .boolean()
    .default(false)
    .describe("Whether the broker keeps the last message of each topic for those that subscribe later; needs a topic with {variable}"),
});

export type MqttSettings = z.infer<typeof settingsSchema>;

/** A broker's place. */
export interface Broker {
  readonly host: string;
  readonly port: number;
}

/** The broker that `host:port` names, an IPv6 address in brackets; undefined: it names none. Pure. */
export function brokerIn(text: string | undefined): Broker | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+)):(\d{1,5})$/i.exec(text ?? "") ?? [];
  const [host = "", port] = [bracketed ?? plain, Number(digits)];
  return hostProblem(host) === undefined && port >= 1 && port <= 65_535 ? { host, port } : undefined;
}

/** Why the second broker does not fit the first, with the setting's name first; undefined: it does. Pure. */
export function fallbackNeed({ fallback }: MqttSettings, { host, port }: Broker): string | undefined {
  const second = brokerIn(fallback);
  return second?.host.toLowerCase() === host.toLowerCase() && second.port === port
    ? "fallback: it is the first broker itself; name another one, or remove the setting"
    : undefined;
}

/** Why the settings do not fit together, with the setting's name first; undefined: they do. Pure. */
export const proxyNeed = ({ proxy, username, tls }: MqttSettings): string | undefined =>
  proxy !== undefined && username !== undefined && tls === undefined
    ? "proxy: the proxy would see the password of this sink at the broker; reach the broker with TLS (tls=true), or without a user"
    : undefined;

/** What the settings ask of the topic and it does not have, with the setting's name first; undefined: nothing. Pure. */
export function topicNeed({ payload, retain, topic_words: words = {}, ...others }: MqttSettings, topic: string): string | undefined {
  const { edge_node_id: edgeNodeId, primary_host_id: primaryHostId, fallback } = others;
  if (payload === "sparkplug" && retain) return "retain: true is not for payload: sparkplug, of which a broker keeps nothing";
  if (payload === "sparkplug" && fallback !== undefined) return "fallback: is not for payload: sparkplug; name one broker";
  if (payload === "sparkplug" && (others.compression !== "none" || others.home_assistant !== undefined))
    return "payload: sparkplug goes with neither compression nor home_assistant; leave both out";
  if (others.manifest && payload !== "envelope" && payload !== "columns" && payload !== "rows")
    return `manifest: payload: ${payload} names neither source nor variable in a message, so that nothing could be verified; use envelope, columns or rows`;
  if (others.manifest && others.qos === 0) return "manifest: with qos: 0 the broker acknowledges nothing; use qos: 1";
  if (payload === "sparkplug") return undefined;
  if (edgeNodeId !== undefined) return `edge_node_id needs payload: sparkplug, and payload is ${payload}`;
  if (primaryHostId !== undefined) return `primary_host_id needs payload: sparkplug, and payload is ${payload}`;
  const unknown = placeholdersOf(topic).find((word) => !OWN_PLACEHOLDERS.includes(word) && !Object.hasOwn(words, word));
  if (unknown !== undefined)
    return `topic_words: the topic ${JSON.stringify(topic.slice(0, 200))} has {${unknown}}; add its text (topic_words.${unknown}=…), or use ${OWN_PLACEHOLDERS.map((word) => `{${word}}`).join(", ")}`;
  const refusal = compressionProblem(others.compression);
  if (refusal !== undefined) return refusal;
  if (others.compression !== "none" && (payload === "value" || payload === "raw"))
    return `compression: payload: ${payload} is not compressed; use envelope, columns or rows, or no compression`;
  if (others.home_assistant !== undefined && (payload === "columns" || others.compression !== "none"))
    return "home_assistant: Home Assistant reads neither columns nor compressed payloads; use value, raw, rows or envelope";
  if (topic.includes("{variable}")) return undefined;
  const right = `a topic with {variable}, such as plant/{source}/{variable}; the topic of this sink is ${JSON.stringify(topic.slice(0, 200))}`;
  if (payload === "value" || payload === "raw") return `payload: ${payload} needs ${right}`;
  return retain ? `retain: true needs ${right}` : undefined;
}
