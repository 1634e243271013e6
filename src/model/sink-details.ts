import { z } from "zod";

/** `details.type` of the data sinks (API-V2, 2.5). */
export const SINK_TYPES = ["mqtt"] as const;
export type SinkType = (typeof SINK_TYPES)[number];

/** MQTT 5.0, 1.5.4: the length of a UTF-8 string is a two-byte integer. */
const MAX_TOPIC_BYTES = 65_535;

/** What is wrong with a topic or topic template to publish to, and what would be right; undefined when nothing is. */
export function topicProblem(topic: string): string | undefined {
  if (topic === "") return "expected a topic of at least one character";
  if (/[+#]/.test(topic)) return "a topic to publish to holds no wildcard: + and # are not allowed"; // MQTT 5.0, 3.3.2.1
  if (topic.includes("\0") || !topic.isWellFormed()) return "a topic is valid UTF-8 without a NUL character"; // MQTT 5.0, 1.5.4
  if (Buffer.byteLength(topic) > MAX_TOPIC_BYTES) return `a topic has at most ${MAX_TOPIC_BYTES} bytes in UTF-8`;
  if (topic.replaceAll("{source}", "").replaceAll("{variable}", "").includes("{"))
    return "unknown placeholder: a topic may hold {source} and {variable}, and no other {";
  return undefined;
}

const topic = z
  .string()
  .check((context) => {
    const problem = topicProblem(context.value);
    if (problem !== undefined) context.issues.push({ code: "custom", message: problem, input: context.value });
  })
  .describe("Topic to publish to: literal, or a template with {source} and {variable}; no wildcards, at most 65535 bytes of UTF-8");

/** As with data sources, a port is bounded where it is created only. */
const createdPort = z.int().min(0).max(65_535).default(1883).describe("Port of the broker, 0..65535");
const readPort = z.int().default(1883).describe("Port of the broker");

const mqtt = {
  type: z.literal("mqtt").describe("Type of the data sink"),
  host: z.string().min(1, "expected a host name or an IP address").describe("Host name or IP address of the broker, without a port"),
  client_id: z.string().min(1).optional().describe("MQTT client identifier; absent: collector-<uuid of the sink>"),
  topic,
  publish_interval: z
    .int()
    .optional()
    .describe(
      "Readouts of one source within this time make one message; in seconds unless publish_interval_unit says milliseconds; absent: 1 s",
    ),
} as const;

/** Every sink type, described once: how it is created, and how it is read. The fields that the API does not show are decided in DESIGN, 6. */
export const SINK_DETAILS = {
  mqtt: { create: z.strictObject({ ...mqtt, port: createdPort }), read: z.object({ ...mqtt, port: readPort }) },
} as const satisfies { readonly [T in SinkType]: { readonly create: z.ZodObject; readonly read: z.ZodObject } };

/** `details` of a creation request. Unknown fields are errors. */
export const sinkDetailsCreateSchema = z.discriminatedUnion("type", [SINK_DETAILS.mqtt.create]);
/** `details` as the API holds them. Unknown fields are dropped. */
export const sinkDetailsReadSchema = z.discriminatedUnion("type", [SINK_DETAILS.mqtt.read]);

export type CreatedSinkDetails = z.output<typeof sinkDetailsCreateSchema>;
export type SinkDetails = z.output<typeof sinkDetailsReadSchema>;
export type MqttDetails = z.infer<typeof SINK_DETAILS.mqtt.read>;

/** `client_id` where none is configured. */
export function defaultClientId(sinkUuid: string): string {
  return `collector-${sinkUuid}`;
}

/** `publish_interval` where none is configured: one second, in the given unit. */
export function defaultPublishInterval(unit: "seconds" | "milliseconds"): number {
  return unit === "seconds" ? 1 : 1000;
}
