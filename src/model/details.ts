import * as z from "zod";
import "./words/issue-words.ts";
import { withoutUserInformation } from "./endpoint-url.ts";
import { hostSchema } from "./host.ts";

/** `details.type` of the data sources in the API (API-V2, 2.2). */
export const DETAILS_TYPES = [
  "vendor_a",
  "modbus_tcp",
  "s7",
  "vendor_b",
  "fins",
  "opcua",
  "vendor_gateway",
  "odac",
  "plastcontrol",
  "s7plus",
] as const;
export type DetailsType = (typeof DETAILS_TYPES)[number];

/** Security policies by the API's own names (API-V2, 2.2); their URIs are http://opcfoundation.org/UA/SecurityPolicy#<name with _ for ->. */
export const SECURITY_POLICIES = [
  "None",
  "Aes128-Sha256-RsaOaep",
  "Aes256-Sha256-RsaPss",
  "Basic128Rsa15",
  "Basic256",
  "Basic256Sha256",
] as const;
export type SecurityPolicy = (typeof SECURITY_POLICIES)[number];

export const SECURITY_MODES = ["None", "Sign", "SignAndEncrypt"] as const;
export type SecurityMode = (typeof SECURITY_MODES)[number];

/** A FINS device address; `NETWORK.NODE.UNIT` in decimal. */
export interface FinsAddress {
  /** 0 is the local network; 0..127. */ readonly network: number;
  /** 0..254. */ readonly node: number;
  /** 0 is the CPU; 0..255. */ readonly unit: number;
}

/** Reads `NETWORK.NODE.UNIT` (Omron W227, FINS command frame: DNA, DA1, DA2); undefined when the text is none. */
export function parseFinsAddress(text: string): FinsAddress | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (!match) return undefined;
  const [network, node, unit] = [Number(match[1]), Number(match[2]), Number(match[3])];
  return network <= 127 && node <= 254 && unit <= 255 ? { network, node, unit } : undefined;
}

const finsAddress = z
  .string()
  .refine(
    (text) => parseFinsAddress(text) !== undefined,
    "expected NETWORK.NODE.UNIT in decimal, for example 0.10.0 (0..127 . 0..254 . 0..255)",
  );

/** Node takes an empty host for this machine, so an empty one is an error in both forms. */
const HOST = "Host name or IP address, without a port";
const host = z.string().min(1, "expected a host name or an IP address").describe(HOST);

/** Where it is given; what is stored already is its source's own trouble. */
const createdHost = hostSchema.describe(HOST);

/** A port is bounded where it is created; the source's status reports a bad one that the API sends (design/api-decisions). */
const createdPort = z.int().min(0).max(65_535).describe("Port, 0..65535");
const readPort = z.int().describe("Port");
const requiredPort = { create: createdPort, read: readPort } as const;
const portWithDefault = (port: number) => ({ create: createdPort.default(port), read: readPort.default(port) });

/**
 * One details type, from which both forms come: `create` refuses unknown fields, `read` drops them.
 * `fields` are in both; `create` and `read` hold what differs (API-V2, 2.4).
 */
function forms<
  T extends DetailsType,
  P extends { readonly create: z.ZodType; readonly read: z.ZodType },
  F extends z.ZodRawShape,
  C extends z.ZodRawShape,
  R extends z.ZodRawShape,
>(type: T, port: P, fields: F, differences: { readonly create: C; readonly read: R }) {
  const constant = z.literal(type).describe("Type of the data source");
  return {
    create: z.strictObject({ type: constant, host: createdHost, port: port.create as P["create"], ...fields, ...differences.create }),
    read: z.object({ type: constant, host, port: port.read as P["read"], ...fields, ...differences.read }),
  } as const;
}

const SAME = { create: {}, read: {} } as const;

/** Does the work of `forms` for an object inside the details. */
function inner<F extends z.ZodRawShape>(fields: F) {
  return { create: z.strictObject(fields), read: z.object(fields) } as const;
}

const security = inner({
  security_mode: z
    .enum(SECURITY_MODES)
    .describe("Message security mode; other than None requires an endpoint security policy other than None"),
  endpoint_security_policy: z.enum(SECURITY_POLICIES).describe("Security policy of the secure channel"),
  token_security_policy: z.enum(SECURITY_POLICIES).describe("Security policy that protects the user's token; free in every mode"),
});

const policyFitsMode = (settings: { readonly security_mode: SecurityMode; readonly endpoint_security_policy: SecurityPolicy }): boolean =>
  settings.security_mode === "None" || settings.endpoint_security_policy !== "None";
const POLICY_FITS_MODE = {
  path: ["endpoint_security_policy"],
  error: "a security_mode other than None requires an endpoint_security_policy other than None",
};

const USER_IN_URL = "a URL holds no user and no password: give them as user_identity, and write an @ of the path as %40";
const SECURITY_SETTINGS = "Security of the connection to the OPC UA server";
const USER_IDENTITY = "Who the collector logs in as";
const PROTOCOL_DETAILS = "What the collector asks the gateway for";
const READOUT_MODE = "active: the collector asks; passive: the controller sends";
const PASSWORD = "Password of the PLC; the password itself is write-only";

const anonymous = inner({ type: z.literal("Anonymous").describe("No user") });
const userName = {
  type: z.literal("UserNamePassword").describe("User name and password"),
  username: z.string().describe("User name"),
};
const opcDa = inner({
  protocol: z.literal("OPC_DA").describe("OPC DA"),
  server_name: z.string().describe("Name of the OPC DA server"),
});
const pvi = inner({
  protocol: z.literal("PVI").describe("PVI"),
  path: z.string().describe("Path of a PVI node containing variables"),
});
const active = inner({ type: z.literal("active").describe("The collector asks") });
const noPassword = inner({ type: z.literal("none").describe("No password: the PLC stays unauthenticated") });

/** Every details type, each described once: how it is created (API-V2, 2.4) and how it is read (2.2). */
export const DETAILS = {
  vendor_a: forms("vendor_a", portWithDefault(44_818), {}, SAME),
  modbus_tcp: forms(
    "modbus_tcp",
    portWithDefault(502),
    { ephemeral_connections: z.boolean().default(true).describe("true: a new connection for each readout; false: one is kept open") },
    SAME,
  ),
  s7: forms(
    "s7",
    portWithDefault(102),
    {
      rack: z.int().default(0).describe("Rack of the CPU"),
      slot: z.int().default(2).describe("Slot of the CPU; 2 for S7-300, 0 or 1 for S7-1200 and S7-1500"),
    },
    SAME,
  ),
  vendor_b: forms(
    "vendor_b",
    portWithDefault(18_901),
    {
      machine: z.enum(["C4", "C5", "C6"]).describe("Generation of the machine control"),
      initialization_mode: z.enum(["Default", "Extended"]).describe("How the connection is initialised"),
    },
    SAME,
  ),
  fins: forms(
    "fins",
    portWithDefault(9600),
    {
      target_plc: z
        .enum(["Classic", "Cs1OrNewer"])
        .default("Cs1OrNewer")
        .describe("Memory layout of the PLC: before CS1, or CS1 and newer"),
      local_address: finsAddress.describe("FINS address of the collector, NETWORK.NODE.UNIT in decimal"),
      remote_address: finsAddress.describe("FINS address of the PLC, NETWORK.NODE.UNIT in decimal"),
    },
    SAME,
  ),
  opcua: forms(
    "opcua",
    requiredPort,
    {},
    {
      create: {
        endpoint_url: z
          .string()
          .regex(/^opc\.tcp:\/\/\S+$/i, "expected a URL such as opc.tcp://192.168.0.10:4840/path")
          .refine((url) => withoutUserInformation(url) === url, USER_IN_URL)
          .describe("Endpoint URL with opc.tcp:// prefix, host, port and server path"),
        security_settings: security.create.refine(policyFitsMode, POLICY_FITS_MODE).describe(SECURITY_SETTINGS),
        user_identity: z
          .discriminatedUnion("type", [
            anonymous.create,
            z.strictObject({ ...userName, password: z.string().describe("Password; write-only, never returned") }),
          ])
          .describe(USER_IDENTITY),
      },
      read: {
        endpoint_url: z.string().describe("Endpoint URL with opc.tcp:// prefix, host, port and server path"),
        security_settings: security.read.refine(policyFitsMode, POLICY_FITS_MODE).describe(SECURITY_SETTINGS),
        user_identity: z
          .discriminatedUnion("type", [
            anonymous.read,
            z.object(userName),
            z.object({ type: z.literal("X509Certificate").describe("A certificate of the user; appears on read only") }),
          ])
          .describe(USER_IDENTITY),
      },
    },
  ),
  vendor_gateway: forms(
    "vendor_gateway",
    requiredPort,
    {},
    {
      create: { protocol_details: z.discriminatedUnion("protocol", [opcDa.create, pvi.create]).describe(PROTOCOL_DETAILS) },
      read: {
        protocol_details: z
          .discriminatedUnion("protocol", [
            opcDa.read,
            pvi.read,
            z.object({ protocol: z.literal("OTHER").describe("Another protocol; appears on read only") }),
          ])
          .describe(PROTOCOL_DETAILS),
      },
    },
  ),
  odac: forms(
    "odac",
    // The one port that the API itself bounds, on read too (API-V2, 8).
    { create: createdPort.default(2020), read: createdPort.default(2020) },
    {},
    {
      create: {},
      read: {
        protocol_override: z
          .enum(["odac", "host"])
          .nullable()
          .default(null)
          .describe("Forces a protocol, which the API sets by a persistent write to the PLC; read only, the collector never writes it"),
      },
    },
  ),
  plastcontrol: forms(
    "plastcontrol",
    requiredPort,
    {},
    {
      create: { readout_mode: z.discriminatedUnion("type", [active.create]).describe(READOUT_MODE) },
      read: {
        readout_mode: z
          .discriminatedUnion("type", [
            active.read,
            z.object({ type: z.literal("passive").describe("The controller sends; appears on read only") }),
          ])
          .describe(READOUT_MODE),
      },
    },
  ),
  s7plus: forms(
    "s7plus",
    requiredPort,
    {
      destination_tsap: z
        .enum(["SIMATIC-ROOT-ES", "SIMATIC-ROOT-HMI"])
        .default("SIMATIC-ROOT-ES")
        .describe("Kind of connection: engineering station, which works most of the time, or HMI, for example when capacity is exceeded"),
    },
    {
      create: {
        password: z
          .discriminatedUnion("type", [
            noPassword.create,
            z.strictObject({
              type: z.literal("set").describe("Stores a password for a locked-down PLC"),
              value: z.string().min(1).describe("Password, at least one character; write-only"),
            }),
          ])
          .optional()
          .describe(PASSWORD),
      },
      read: {
        password: z
          .discriminatedUnion("type", [
            noPassword.read,
            z.object({ type: z.literal("configured").describe("A password is configured; it is never returned") }),
          ])
          .describe(PASSWORD),
      },
    },
  ),
} as const satisfies { readonly [T in DetailsType]: { readonly create: z.ZodObject; readonly read: z.ZodObject } };

/** `details` of a creation request and of local input (API-V2, 2.4). Unknown fields are errors. */
export const detailsCreateSchema = z.discriminatedUnion("type", [
  DETAILS.vendor_a.create,
  DETAILS.modbus_tcp.create,
  DETAILS.s7.create,
  DETAILS.vendor_b.create,
  DETAILS.fins.create,
  DETAILS.opcua.create,
  DETAILS.vendor_gateway.create,
  DETAILS.odac.create,
  DETAILS.plastcontrol.create,
  DETAILS.s7plus.create,
]);

/** `details` as the API holds them (API-V2, 2.2). Unknown fields are dropped. */
export const detailsReadSchema = z.discriminatedUnion("type", [
  DETAILS.vendor_a.read,
  DETAILS.modbus_tcp.read,
  DETAILS.s7.read,
  DETAILS.vendor_b.read,
  DETAILS.fins.read,
  DETAILS.opcua.read,
  DETAILS.vendor_gateway.read,
  DETAILS.odac.read,
  DETAILS.plastcontrol.read,
  DETAILS.s7plus.read,
]);

export type CreatedDetails = z.output<typeof detailsCreateSchema>;
export type Details = z.output<typeof detailsReadSchema>;
export type ModbusTcpDetails = z.infer<typeof DETAILS.modbus_tcp.read>;
export type OpcuaDetails = z.infer<typeof DETAILS.opcua.read>;
export type S7Details = z.infer<typeof DETAILS.s7.read>;
export type VendorADetails = z.infer<typeof DETAILS.vendor_a.read>;
export type VendorGatewayDetails = z.infer<typeof DETAILS.vendor_gateway.read>;
export type FinsDetails = z.infer<typeof DETAILS.fins.read>;
export type S7plusDetails = z.infer<typeof DETAILS.s7plus.read>;

/**
 * What was created, in the form in which it is read, and the write-only secrets that were in it, by the name that a driver takes them by:
 * `password`. Pure; the details hold no secret.
 */
export function toReadDetails(created: CreatedDetails): { readonly details: Details; readonly secrets: Readonly<Record<string, string>> } {
  switch (created.type) {
    case "opcua": {
      const { user_identity: identity, ...rest } = created;
      if (identity.type === "Anonymous") return { details: { ...rest, user_identity: identity }, secrets: {} };
      const { password, ...user } = identity;
      return { details: { ...rest, user_identity: user }, secrets: { password } };
    }
    case "s7plus": {
      const { password, ...rest } = created;
      if (password?.type !== "set") return { details: { ...rest, password: { type: "none" } }, secrets: {} };
      return { details: { ...rest, password: { type: "configured" } }, secrets: { password: password.value } };
    }
    case "odac":
      return { details: { ...created, protocol_override: null }, secrets: {} };
    default:
      return { details: created, secrets: {} };
  }
}
