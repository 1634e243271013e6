import * as z from "zod";
import "./words/issue-words.ts";
import { boundedArray } from "./bounded.ts";
import { SECURITY_MODES, SECURITY_POLICIES } from "./details.ts";
import { OPCUA_PORT } from "./endpoint-url.ts";
import { hostSchema } from "./host.ts";

/** `details.type` of the data sinks (API-V2, 1 and 2.5: an MQTT broker, an OPC UA server hosted by the collector, the platform itself). */
export const SINK_TYPES = ["mqtt", "opcua", "platform"] as const;
export type SinkType = (typeof SINK_TYPES)[number];

/** MQTT 5.0, 1.5.4: the length of a UTF-8 string is a two-byte integer. */
const MAX_TOPIC_BYTES = 65_535;

/** What is wrong with a topic or topic template to publish to, and what would be right; undefined when nothing is. */
export function topicProblem(topic: string): string | undefined {
  if (topic === "") return "expected a topic of at least one character";
  if (/[+#]/.test(topic)) return "a topic to publish to holds no wildcard: + and # are not allowed"; // MQTT 5.0, 3.3.2.1
  if (topic.includes("\0") || !topic.isWellFormed()) return "a topic is valid UTF-8 without a NUL character"; // MQTT 5.0, 1.5.4
  if (Buffer.byteLength(topic) > MAX_TOPIC_BYTES) return `a topic has at most ${MAX_TOPIC_BYTES} bytes in UTF-8`;
  if (topic.replaceAll(PLACEHOLDER, "").includes("{"))
    return "unknown placeholder: a topic may hold {source}, {variable}, {machine}, {collector} and words such as {site}, and no other {";
  return undefined;
}

const PLACEHOLDER = /\{([a-z][a-z0-9_]{0,30})\}/g;

/** The words between braces, in their order. Pure. */
export const placeholdersOf = (topic: string): readonly string[] => [...topic.matchAll(PLACEHOLDER)].map(([, word = ""]) => word);

/** The topic with these words filled in; others stay. Pure. */
export const withWords = (topic: string, words: Readonly<Record<string, string>>): string =>
  topic.replaceAll(PLACEHOLDER, (whole, word: string) => (Object.hasOwn(words, word) ? (words[word] ?? whole) : whole));

const topic = z
  .string()
  .check((context) => {
    const problem = topicProblem(context.value);
    if (problem !== undefined) context.issues.push({ code: "custom", message: problem, input: context.value });
  })
  .describe(
    "Topic to publish to: literal, or a template with {source}, {variable}, {machine}, {collector} and words of the sink's local settings; no wildcards, at most 65535 bytes of UTF-8",
  );

/** As with data sources, a port is bounded where it is created only. */
const createdPort = z.int().min(0).max(65_535).default(1883).describe("Port of the broker, 0..65535");
const readPort = z.int().default(1883).describe("Port of the broker");

const BROKER = "Host name or IP address of the broker, without a port";

const publishInterval = z.int();
const PUBLISH_INTERVAL =
  "Readouts of one source within this time make one message; in seconds unless publish_interval_unit says milliseconds; absent: 1 s";
/** Bounded where it is given, like host and port. */
const createdPublishInterval = publishInterval.min(1, "expected a whole number from 1").optional().describe(PUBLISH_INTERVAL);

const mqtt = {
  type: z.literal("mqtt").describe("Type of the data sink"),
  host: z.string().min(1, "expected a host name or an IP address").describe(BROKER),
  client_id: z.string().min(1).optional().describe("MQTT client identifier; absent: collector-<uuid of the sink>"),
  topic,
  publish_interval: publishInterval.optional().describe(PUBLISH_INTERVAL),
} as const;

const MAX_USERS = 100;

/** Lists without duplicates and with at least one entry. */
const choices = <const V extends readonly [string, ...string[]]>(values: V, fallback: V[number][]) =>
  boundedArray(z.enum(values), values.length)
    .min(1, "expected at least one of them")
    .refine((list) => new Set(list).size === list.length, "the values are not unique: give each of them once")
    .meta({ uniqueItems: true })
    .default(fallback);

const username = z.string().min(1, "expected a user name of at least one character").describe("User name, once in the list");

/** As in every list of users: a name that stood twice would have two passwords. */
const namedOnce = (users: readonly { readonly username: string }[]): boolean =>
  new Set(users.map((user) => user.username)).size === users.length;
const NAMED_ONCE = "a user name is there twice: give each name once";
const USERS = "Who may log in at the server; a change replaces the full list";

const opcua = {
  type: z.literal("opcua").describe("Type of the data sink"),
  path: z
    .string()
    .regex(/^\/[^\s?#]*$/, "expected a path that begins with /, such as / or /collector")
    .default("/")
    .describe("Path in the endpoint's URL"),
  security_modes: choices(SECURITY_MODES, ["Sign", "SignAndEncrypt"]).describe("Message security modes that the server offers"),
  security_policies: choices(SECURITY_POLICIES, ["Aes128-Sha256-RsaOaep", "Aes256-Sha256-RsaPss", "Basic256Sha256"]).describe(
    "Security policies that the server offers in the modes other than None",
  ),
  anonymous: z.boolean().default(false).describe("Whether a client may connect without a user"),
} as const;

interface OfferedSecurity {
  readonly security_modes: readonly string[];
  readonly security_policies: readonly string[];
}

/** A server whose modes find no policy to go with would offer no endpoint. */
const policyForModes = ({ security_modes, security_policies }: OfferedSecurity): boolean =>
  !security_modes.some((mode) => mode !== "None") || security_policies.some((policy) => policy !== "None");
const POLICY_FOR_MODES = {
  path: ["security_policies"],
  error: "a security mode other than None requires a security policy other than None",
};

const platform = {
  type: z.literal("platform").describe("Type of the data sink: the platform whose configuration API this is"),
  publish_interval: mqtt.publish_interval,
} as const;

/** Every sink type, described once: how it is created, and how it is read. The fields that the API does not show are decided in design/api-decisions. */
export const SINK_DETAILS = {
  mqtt: {
    create: z.strictObject({ ...mqtt, host: hostSchema.describe(BROKER), publish_interval: createdPublishInterval, port: createdPort }),
    read: z.object({ ...mqtt, port: readPort }),
  },
  opcua: {
    create: z
      .strictObject({
        ...opcua,
        port: z.int().min(0).max(65_535).default(OPCUA_PORT).describe("Port that the server listens on, 0..65535"),
        users: boundedArray(
          z.strictObject({
            username,
            password: z.string().min(1, "expected a password of at least one character").describe("Password; write-only, never returned"),
          }),
          MAX_USERS,
        )
          .refine(namedOnce, NAMED_ONCE)
          .default([])
          .describe(USERS),
      })
      .refine(policyForModes, POLICY_FOR_MODES),
    read: z.object({
      ...opcua,
      port: z.int().default(OPCUA_PORT).describe("Port that the server listens on"),
      users: z.array(z.object({ username })).default([]).describe(USERS),
    }),
  },
  platform: { create: z.strictObject({ ...platform, publish_interval: createdPublishInterval }), read: z.object(platform) },
} as const satisfies { readonly [T in SinkType]: { readonly create: z.ZodObject; readonly read: z.ZodObject } };

/** `details` of a creation request. Unknown fields are errors. */
export const sinkDetailsCreateSchema = z.discriminatedUnion("type", [
  SINK_DETAILS.mqtt.create,
  SINK_DETAILS.opcua.create,
  SINK_DETAILS.platform.create,
]);
/** `details` as the API holds them. Unknown fields are dropped. */
export const sinkDetailsReadSchema = z.discriminatedUnion("type", [
  SINK_DETAILS.mqtt.read,
  SINK_DETAILS.opcua.read,
  SINK_DETAILS.platform.read,
]);

export type CreatedSinkDetails = z.output<typeof sinkDetailsCreateSchema>;
export type SinkDetails = z.output<typeof sinkDetailsReadSchema>;
export type MqttDetails = z.infer<typeof SINK_DETAILS.mqtt.read>;
export type OpcuaSinkDetails = z.infer<typeof SINK_DETAILS.opcua.read>;

/** Name of the password of an OPC UA sink's user among the sink's secrets. */
export function userSecretName(user: string): string {
  return `users.${user}.password`;
}

/** What was created, in the form in which it is read, and the write-only secrets that were in it, by the name a sink takes them by. Pure. */
export function toReadSinkDetails(created: CreatedSinkDetails): {
  readonly details: SinkDetails;
  readonly secrets: Readonly<Record<string, string>>;
} {
  if (created.type !== "opcua") return { details: created, secrets: {} };
  return {
    details: { ...created, users: created.users.map((user) => ({ username: user.username })) },
    secrets: Object.fromEntries(created.users.map((user) => [userSecretName(user.username), user.password])),
  };
}

/** `client_id` where none is configured. */
export function defaultClientId(sinkUuid: string): string {
  return `collector-${sinkUuid}`;
}

/** `publish_interval` where none is configured: one second, in the given unit. */
export function defaultPublishInterval(unit: "seconds" | "milliseconds"): number {
  return unit === "seconds" ? 1 : 1000;
}
