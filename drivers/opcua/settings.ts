import * as z from "zod";
import { endpointParts } from "../../src/model/endpoint-url.ts";

const READ_MODES = ["plain", "registered", "subscribe"] as const;

/** The local options of an OPC UA source. */
export const settingsSchema = z.strictObject({
  read_mode: z
    .enum(READ_MODES)
    .default("plain")
    .describe(
      "plain: the Read service at each readout; registered: the same with nodes that the server was told of before; subscribe: the server sends changes, and a readout takes the last ones",
    ),
  trust: z
    .enum(["strict", "first_use"])
    .default("strict")
    .describe(
      "strict: only server certificates that a person trusts; first_use: the first certificate of a server becomes trusted, another one later does not",
    ),
  application_uri_check: z
    .boolean()
    .default(true)
    .describe("Whether the server's certificate must name the application URI that the server announces (OPC 10000-4, 6.1.3)"),
  user_certificate: z
    .string()
    .regex(/^[A-Za-z0-9][\w.-]{0,99}$/, "letters, digits, dot, hyphen and underscore")
    .default("user")
    .describe("Name of certificate and key in pki/users, for the user identity X509Certificate"),
  second_endpoint_url: z
    .string()
    .max(4096)
    .refine(
      (url) => url === "" || endpointParts(url) !== undefined,
      "expected opc.tcp://HOST:PORT of a second server, such as opc.tcp://10.0.0.8:4840",
    )
    .default("")
    .describe(
      "A second server with the same variables, at the same port: used where the first is away, or where its ServiceLevel is the higher one. Empty: there is none",
    ),
  max_nodes: z
    .int()
    .min(1)
    .max(10_000)
    .default(1000)
    .describe("Nodes in one request; the server's own limit and its refusals make it less"),
  in_flight: z.int().min(1).max(16).default(1).describe("Requests under way at once"),
  session_timeout: z
    .int()
    .min(10_000)
    .max(3_600_000)
    .default(60_000)
    .describe("Milliseconds without a request after which the server may end the session; the collector keeps an idle one alive"),
  sampling_interval: z
    .int()
    .min(0)
    .max(3_600_000)
    .default(500)
    .describe("Milliseconds between two looks of the server at a variable, for read_mode subscribe; the server may choose another"),
  publishing_interval: z
    .int()
    .min(50)
    .max(60_000)
    .default(500)
    .describe("Milliseconds between two messages of the server, for read_mode subscribe"),
  queue_size: z
    .int()
    .min(1)
    .max(100_000)
    .default(10)
    .describe(
      "Changes of a variable that the server keeps between two messages, for read_mode subscribe; those beyond are lost, and named",
    ),
  audit_interval: z
    .int()
    .min(0)
    .max(86_400_000)
    .default(300_000)
    .describe(
      "Milliseconds within which each variable that comes by subscription is read plainly once and compared, for read_mode subscribe; 0: never",
    ),
  max_answer_bytes: z
    .int()
    .min(65_536)
    .max(67_108_864)
    .default(16_777_216)
    .describe("Bytes of one answer at most; a larger one ends the connection, and the collector asks for less on the next"),
});

export type OpcuaSettings = z.infer<typeof settingsSchema>;
