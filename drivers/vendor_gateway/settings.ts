import * as z from "zod";

/** The local options of a source behind a gateway. */
export const settingsSchema = z.strictObject({
  security: z
    .enum(["none", "psk", "certificate"])
    .default("none")
    .describe(
      "none: nothing is encrypted; psk: TLS with a key that both sides have, kept as the source's password; certificate: TLS, the gateway's certificate is trusted as those of OPC UA servers are",
    ),
  psk_identity: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, "1 to 128 printable characters without blanks")
    .default("collector")
    .describe("Name under which the gateway has the key, for security psk"),
  trust: z
    .enum(["strict", "first_use"])
    .default("strict")
    .describe(
      "For security certificate. strict: only certificates that a person trusts; first_use: the first one of a gateway becomes trusted, another one later does not",
    ),
  max_items: z.int().min(1).max(10_000).default(1000).describe("Variables in one request; the gateway's own limit makes it less"),
  in_flight: z.int().min(1).max(8).default(2).describe("Requests under way at once; the gateway's own limit makes it less"),
  max_answer_bytes: z
    .int()
    .min(65_536)
    .max(16_777_216)
    .default(1_048_576)
    .describe("Bytes of one answer at most; the gateway refuses a request whose answer is larger, and the collector asks for less"),
});

export type GatewaySettings = z.infer<typeof settingsSchema>;
