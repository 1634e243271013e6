import * as z from "zod";
import { parseDuration } from "../../base/duration.ts";
import { passwordNetworksSchema } from "../../model/settings.ts";
import { idProblem } from "./sparkplug/topics.ts";

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
  connect_timeout: duration("5s", 1, 60_000, "at most 1min").describe(
    "Deadline of the name look-up, of the TCP connect and of the broker's answer, each",
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
    .enum(["envelope", "rows", "value", "raw", "sparkplug"])
    .default("envelope")
    .describe(
      "What a message holds: the readouts of a source with all that is known of them; a list of rows of one value each; one value as JSON with time, quality and unit; the bare value, with those as user properties; or messages of Sparkplug B 3.0, on the topics of Sparkplug. value and raw need a topic with {variable}",
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
  timestamps: z
    .enum(["iso", "epoch_ms"])
    .default("iso")
    .describe("How times are written in rows: ISO 8601 in UTC with three digits, or as a number of milliseconds since 1970"),
  retain: z
    .boolean()
    .default(false)
    .describe("Whether the broker keeps the last message of each topic for those that subscribe later; needs a topic with {variable}"),
});

export type MqttSettings = z.infer<typeof settingsSchema>;

/** What the settings ask of the topic and it does not have, with the setting's name first; undefined: nothing. Pure. */
export function topicNeed({ payload, retain, edge_node_id, primary_host_id }: MqttSettings, topic: string): string | undefined {
  if (payload === "sparkplug") return retain ? "retain: true is not for payload: sparkplug, of which a broker keeps nothing" : undefined;
  if (edge_node_id !== undefined) return `edge_node_id needs payload: sparkplug, and payload is ${payload}`;
  if (primary_host_id !== undefined) return `primary_host_id needs payload: sparkplug, and payload is ${payload}`;
  if (topic.includes("{variable}")) return undefined;
  const right = `a topic with {variable}, such as plant/{source}/{variable}; the topic of this sink is ${JSON.stringify(topic.slice(0, 200))}`;
  if (payload === "value" || payload === "raw") return `payload: ${payload} needs ${right}`;
  return retain ? `retain: true needs ${right}` : undefined;
}
