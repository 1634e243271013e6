import * as z from "zod";
import type { Condition } from "./condition.ts";

const plain = <T extends string>(type: T) => z.strictObject({ type: z.literal(type) });

/** Why a readout failed: the API's closed set, with its exact payloads (API-V2, 2.3). */
export const reasonSchema = z.discriminatedUnion("type", [
  plain("LOOKUP_ERROR"),
  plain("NO_ROUTE_TO_HOST"),
  plain("HOST_DOWN"),
  plain("NETWORK_UNREACHABLE"),
  plain("CONNECTION_REFUSED"),
  plain("CONNECTION_RESET"),
  plain("CONNECTION_CLOSED"),
  plain("TIMEOUT"),
  plain("VENDOR_GATEWAY_ERROR"),
  z.strictObject({
    type: z.literal("OPC_UA_ERROR_RESPONSE"),
    code: z.int().describe("Numeric error code from the OPC UA server"),
    name: z.string().nullable().describe("Descriptive name of the code"),
    description: z.string().nullable().describe("Descriptive text of the code"),
    reason: z.string().nullable().describe("Reason returned by the server"),
  }),
  z.strictObject({
    type: z.literal("OPC_UA_NO_MATCHING_ENDPOINT_POLICY"),
    endpoint_url: z.string().describe("Endpoint of the server"),
    endpoint_security_policy_uri: z.string().describe("Requested endpoint security policy URI"),
    message_security_mode: z.string().describe("Requested message security mode"),
    token_type: z.string().describe("Configured token type"),
    token_security_policy_uri: z.string().describe("Requested token security policy URI"),
  }),
  z.strictObject({
    type: z.literal("S7PLUS_ERROR"),
    category: z.enum(["AUTHENTICATION", "UNKNOWN"]).describe("AUTHENTICATION: a wrong password or missing permissions"),
  }),
  z.strictObject({
    type: z.literal("FINS_NETWORK_RELAY_ERROR"),
    response_code: z.int().describe("FINS end code reported by the relay"),
    requested_node: z.int().describe("Node number the request was addressed to"),
    relay_network: z.int().describe("Network address of the reporting relay"),
    relay_node: z.int().describe("Node address of the reporting relay"),
  }),
  plain("UNKNOWN"),
]);

export type Reason = z.infer<typeof reasonSchema>;
export type ReasonType = Reason["type"];
/** The reasons that carry nothing but their name. */
export type PlainReasonType = Exclude<
  ReasonType,
  "OPC_UA_ERROR_RESPONSE" | "OPC_UA_NO_MATCHING_ENDPOINT_POLICY" | "S7PLUS_ERROR" | "FINS_NETWORK_RELAY_ERROR"
>;

export const REASON_TYPES: readonly ReasonType[] = reasonSchema.options.map((option) => option.shape.type.value);

/**
 * The source failed; what is open to it is thrown away. The message is for people and becomes the local detail,
 * the reason is for programs. `condition` names what the API has no reason for (then the reason is UNKNOWN).
 */
export class ReasonError extends Error {
  override readonly name = "ReasonError";
  readonly reason: Reason;
  readonly condition: Condition | undefined;
  /** The peer asks not to be tried again before. Milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The peer has ended or forgotten what was open, which says nothing against a new one at once. */
  readonly sessionLost: boolean;
  constructor(
    reason: Reason | PlainReasonType,
    message: string,
    options?: ErrorOptions & { condition?: Condition; retryAfterMs?: number | undefined; sessionLost?: boolean },
  ) {
    super(message, options);
    this.reason = typeof reason === "string" ? { type: reason } : reason;
    this.condition = options?.condition;
    this.retryAfterMs = options?.retryAfterMs;
    this.sessionLost = options?.sessionLost ?? (this.reason.type === "CONNECTION_CLOSED" || this.reason.type === "CONNECTION_RESET");
  }
}

/** A peer that asks for more time is tried again after this all the same. */
const LONGEST_REST_MS = 3_600_000;

/** How long the peer asks not to be tried again: 0 ms to an hour, whatever it says. Pure. */
export const restMsOf = ({ retryAfterMs = 0 }: ReasonError): number => Math.min(Math.max(0, retryAfterMs), LONGEST_REST_MS);
