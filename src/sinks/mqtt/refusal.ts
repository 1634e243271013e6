import { escapeControls } from "../../base/plain-text.ts";
import { clip } from "../../model/bounded-failure.ts";
import { ReasonError } from "../../model/reason.ts";

const SET_USER = "sudo collector sink set NAME username=USER, which asks for the password";
const SET_HOST = "collector sink set NAME host=OTHER";
const SET_CLIENT_ID = "collector sink set NAME client_id=OTHER";

/** MQTT 3.1.1, 3.2.2.3 (1–5) and MQTT 5.0, 3.2.2.2 and 3.4.2.1: what a person can do about a refusal. NAME: the sink. */
const NEXT_STEP: Readonly<Record<number, string>> = {
  2: `choose another client_id: ${SET_CLIENT_ID}`,
  3: "the broker is not ready; it is tried again",
  4: `correct user and password: ${SET_USER}`,
  5: `give this user the right to connect in the broker's configuration, or set user and password: ${SET_USER}`,
  133: `choose another client_id: ${SET_CLIENT_ID}`,
  134: `correct user and password: ${SET_USER}`,
  135: `give this user or client_id the right in the broker's configuration, or set user and password: ${SET_USER}`,
  136: "the broker is not ready; it is tried again",
  137: "the broker is overloaded; it is tried again",
  138: "the broker has banned this client; ask its administrator",
  142: `another client uses the same client_id; give each its own: ${SET_CLIENT_ID}`,
  144: "choose another topic",
  150: "raise the rate of publishes that the broker allows this client; fewer a second are sent now",
  149: "raise the broker's limit of a packet, or lower publish_interval",
  151: "raise the broker's quota for this client; it is tried again",
  154: "allow retained messages on the broker: status and metadata need them",
  155: "allow QoS 1 on the broker, or (not with payload: sparkplug) send without confirmation: sudo collector sink set NAME qos=0",
  156: `use the server that it names, for now: ${SET_HOST}`,
  157: `use the server that it names: ${SET_HOST}`,
  159: "the broker takes fewer connections in this time; it is tried again",
};

/** Another client has connected with the same client identifier. */
export const SESSION_TAKEN_OVER = 142;

/** In PUBACK, MQTT 5.0, 3.4.2.1: success, and no matching subscribers. */
export const isSuccess = (code: number): boolean => code === 0 || code === 16;

/** Packet identifier in use: the message is kept and tried again over a new connection. */
export const IDENTIFIER_IN_USE = 145;

/** The broker took none of a publish, for what it has taken before: it is sent again. */
export const QUOTA_EXCEEDED = 151;

/** Connection rate exceeded: it is tried less and less often. */
export const CONNECTION_RATE_EXCEEDED = 159;

/** In DISCONNECT: message rate too high, and quota exceeded. */
export const isOfRate = (code: number): boolean => code === 150 || code === QUOTA_EXCEEDED;

/** In PUBACK no code of MQTT 5.0 (3.4.2.1), and what mosquitto answers above its message_size_limit. */
const PACKET_TOO_LARGE = 149;

/** Topic Name invalid: it is not what is in the message. */
const TOPIC_INVALID = 144;

/** Not authorized: a right may be given. */
const NOT_AUTHORIZED = 135;

/** Unspecified error, implementation specific error: the broker's own trouble, which may pass. */
const BROKER_TROUBLE = new Set([128, 131]);

/** DISCONNECT may be for what was published (MQTT 5.0, 3.14.2.1): too large, no right, a topic or options that it does not take. */
const OF_A_PUBLISH = new Set([131, 135, 144, 149, 154, 155]);

/** True: a broker that ended the session with this code, or without one, may have done so for a publish. */
export const isOfPublish = (code: number | undefined): boolean => code === undefined || OF_A_PUBLISH.has(code);

/**
 * too_large: smaller ones may be taken. of_topic: whatever else is published there would be refused, too; no_right: until a right is given;
 * in_trouble: it may pass. refused: the message may be at fault.
 */
export type RefusalType = "too_large" | "of_topic" | "no_right" | "in_trouble" | "refused";

/** What a PUBACK with this code, which is not one of success, says of the publish. Codes that MQTT does not know are refusals of it. */
export function refusalType(code: number): RefusalType {
  if (code === PACKET_TOO_LARGE) return "too_large";
  if (code === TOPIC_INVALID) return "of_topic";
  if (code === NOT_AUTHORIZED) return "no_right";
  return BROKER_TROUBLE.has(code) ? "in_trouble" : "refused";
}

/** Words of the broker beside its code (MQTT 5.0, 3.2.2.3.9 and 3.2.2.3.16, 3.4.2.2.2, 3.14.2.2.3 and 3.14.2.2.5): for people, and another server. */
export interface Said {
  readonly reasonString: string | undefined;
  readonly serverReference: string | undefined;
}

/** Longest text of a broker that is repeated, in characters. */
const MAX_SAID = 300;

/** The broker's own words in a packet, bounded, without control characters and without `secret`, which a broker may repeat. Pure. */
export function saidIn(packet: object, secret?: string): Said {
  const properties = "properties" in packet && typeof packet.properties === "object" ? packet.properties : undefined;
  const textOf = (name: string): string | undefined => {
    const found: unknown = Object.entries(properties ?? {}).find(([key]) => key === name)?.[1];
    if (typeof found !== "string" || found === "") return undefined;
    const known = secret === undefined || secret === "" ? found : found.replaceAll(secret, "…");
    return escapeControls(clip(known, MAX_SAID));
  };
  return { reasonString: textOf("reasonString"), serverReference: textOf("serverReference") };
}

export interface RefusalDetails {
  /** The name for commands. */
  readonly sink?: string | undefined;
  /** The collector sent a user. */
  readonly hasUser?: boolean;
  readonly said?: Said | undefined;
}

/** The words for its code, the code, the broker's own words and the next step. */
export function refusalText(words: string | undefined, code: number, { sink = "NAME", said }: RefusalDetails = {}): string {
  const step = NEXT_STEP[code]?.replace("NAME", () => sink);
  return [
    `${words === undefined || words === "" ? "unknown reason" : words} (code ${code})`,
    ...(said?.reasonString === undefined ? [] : [`it says ${JSON.stringify(said.reasonString)}`]),
    ...(said?.serverReference === undefined ? [] : [`it names another server: ${said.serverReference}`]),
    ...(step === undefined ? [] : [step]),
  ].join("; ");
}

/** Codes of a CONNECT whose user or password may be wrong: brokers answer a wrong password with "not authorized", too. */
const OF_A_USER: ReadonlySet<number> = new Set([4, 5, 134, NOT_AUTHORIZED]);

/** `cause`: the library's error. */
export const connectRefused = (
  endpoint: string,
  words: string | undefined,
  code: number,
  { cause, ...details }: RefusalDetails & { readonly cause?: unknown },
): ReasonError =>
  new ReasonError("UNKNOWN", `the broker ${endpoint} refuses the connection: ${refusalText(words, code, details)}`, {
    condition: "server_refuses",
    cause,
    ...(details.hasUser === true &&
      OF_A_USER.has(code) && {
        nextStep: `Give the password once more: \`sudo collector secret set ${details.sink ?? "NAME"}\`; if it is right, look into the broker's log: the user is another one, or has no right to connect.`,
      }),
    isLasting: code === CONNECTION_RATE_EXCEEDED,
  });

/** MQTT 5.0, 3.2.2.3.5: the broker does not keep messages, and the last will is to be kept. */
export const RETAIN_NOT_SUPPORTED = 154;

/** Codes for which a CONNECT may be refused over its last will: no right, its topic, its size, its form, its QoS (MQTT 5.0, 3.2.2.2; 3.1.1: 5). */
const OF_A_WILL: ReadonlySet<number> = new Set([5, 131, 135, 144, 149, 153, 155]);
export const isOfWill = (code: number): boolean => OF_A_WILL.has(code);

/** MQTT 3.1.1 says 1, MQTT 5.0 says 132: the broker does not speak this version. */
export const isVersionRefusal = (code: number): boolean => code === 1 || code === 132;
