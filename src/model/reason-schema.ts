import * as z from "zod";

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
