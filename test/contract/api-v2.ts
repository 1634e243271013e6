/**
 * The tables of API-V2 as data: names, types, required or optional, nullable, defaults, enums and ranges, by section.
 * `ours` holds what the document leaves open and design/api-decisions decides; nothing else here may differ from the document.
 */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export type Row = Plain | Enum | List | Nested | Union;

interface Common {
  readonly field: string;
  /** True for R. A field with a default may be left out all the same. */
  readonly required: boolean;
  readonly nullable?: boolean;
  readonly default?: Json;
  readonly ours?: Ours;
  /** The value in a valid object, where a condition binds it to another field. */
  readonly sample?: Json;
  /** What becomes of unknown fields in here, where it differs from the object around it. */
  readonly form?: "strict" | "stripping";
}

/** Decided in design/api-decisions or by the field's own rule. */
export interface Ours {
  readonly default?: Json;
  readonly nullable?: boolean;
  readonly required?: boolean;
  readonly min?: number;
  readonly max?: number;
  readonly minLength?: number;
  /** Texts that a rule of ours on the form of this field takes, and those it refuses. */
  readonly takes?: readonly string[];
  readonly refuses?: readonly string[];
}

interface Plain extends Common {
  readonly type: "string" | "integer" | "boolean" | "uuid" | "date-time" | "record";
  /** Bounds of an integer, both inclusive. */
  readonly min?: number;
  readonly max?: number;
  /** Bounds of a string in characters, both inclusive. */
  readonly minLength?: number;
  readonly maxLength?: number;
}

interface Enum extends Common {
  readonly type: "enum";
  readonly values: readonly string[];
}

/** One or more of the values, each once. */
interface List extends Common {
  readonly type: "list";
  readonly values: readonly string[];
}

interface Nested extends Common {
  readonly type: "object" | "array";
  readonly shape: readonly Row[];
  /** A field in which no two items of an array may agree. */
  readonly unique?: string;
}

interface Union extends Common {
  readonly type: "union";
  readonly discriminator: string;
  /** By the constant of the discriminator, which every variant carries besides these fields. */
  readonly variants: Readonly<Record<string, readonly Row[]>>;
}

export interface Table {
  readonly section: string;
  readonly shape: readonly Row[];
}

const R = { required: true } as const;
const O = { required: false } as const;

const string = (field: string, rest: Omit<Plain, "field" | "type">): Plain => ({ field, type: "string", ...rest });
const integer = (field: string, rest: Omit<Plain, "field" | "type">): Plain => ({ field, type: "integer", ...rest });
const boolean = (field: string, rest: Omit<Plain, "field" | "type">): Plain => ({ field, type: "boolean", ...rest });
const uuid = (field: string, rest: Omit<Plain, "field" | "type"> = R): Plain => ({ field, type: "uuid", ...rest });
const instant = (field: string, rest: Omit<Plain, "field" | "type"> = R): Plain => ({ field, type: "date-time", ...rest });
const oneOf = (field: string, values: readonly string[], rest: Omit<Enum, "field" | "type" | "values">): Enum => ({
  field,
  type: "enum",
  values,
  ...rest,
});
const object = (field: string, shape: readonly Row[], rest: Omit<Nested, "field" | "type" | "shape"> = R): Nested => ({
  field,
  type: "object",
  shape,
  ...rest,
});
const array = (field: string, shape: readonly Row[], rest: Omit<Nested, "field" | "type" | "shape"> = R): Nested => ({
  field,
  type: "array",
  shape,
  ...rest,
});
const list = (field: string, values: readonly string[], rest: Omit<List, "field" | "type" | "values">): List => ({
  field,
  type: "list",
  values,
  ...rest,
});
const union = (
  field: string,
  discriminator: string,
  variants: Readonly<Record<string, readonly Row[]>>,
  rest: Omit<Union, "field" | "type" | "discriminator" | "variants"> = R,
): Union => ({ field, type: "union", discriminator, variants, ...rest });

/** The shape with the named rows replaced: what differs on creation. */
const replaced = (shape: readonly Row[], ...rows: readonly Row[]): readonly Row[] =>
  shape.map((row) => rows.find(({ field }) => field === row.field) ?? row);
const without = (shape: readonly Row[], field: string): readonly Row[] => shape.filter((row) => row.field !== field);

// 2.2

const POLICIES = ["None", "Aes128-Sha256-RsaOaep", "Aes256-Sha256-RsaPss", "Basic128Rsa15", "Basic256", "Basic256Sha256"];
const host = string("host", { ...R, ours: { minLength: 1 } });
const port = (fallback?: number): Row => integer("port", fallback === undefined ? R : { ...O, default: fallback });
const finsAddress = (field: string): Row =>
  string(field, {
    ...R,
    ours: {
      takes: ["0.10.0", "127.254.255", "0.0.0"],
      refuses: ["", "10.0", "128.1.0", "0.255.0", "0.1.256", "0.1.0.0", "a.b.c", " 0.1.0"],
    },
  });

const SECURITY_SETTINGS: readonly Row[] = [
  oneOf("security_mode", ["None", "Sign", "SignAndEncrypt"], { ...R, sample: "None" }),
  oneOf("endpoint_security_policy", POLICIES, { ...R, sample: "Basic256Sha256" }),
  oneOf("token_security_policy", POLICIES, R),
];

const READ: Readonly<Record<string, readonly Row[]>> = {
  vendor_a: [host, port(44_818)],
  modbus_tcp: [host, port(502), boolean("ephemeral_connections", { ...O, default: true })],
  s7: [host, port(102), integer("rack", { ...O, default: 0 }), integer("slot", { ...O, default: 2 })],
  vendor_b: [host, port(18_901), oneOf("machine", ["C4", "C5", "C6"], R), oneOf("initialization_mode", ["Default", "Extended"], R)],
  fins: [
    host,
    port(9600),
    oneOf("target_plc", ["Classic", "Cs1OrNewer"], { ...O, default: "Cs1OrNewer" }),
    finsAddress("local_address"),
    finsAddress("remote_address"),
  ],
  opcua: [
    host,
    port(),
    string("endpoint_url", R),
    object("security_settings", SECURITY_SETTINGS),
    union("user_identity", "type", { Anonymous: [], UserNamePassword: [string("username", R)], X509Certificate: [] }),
  ],
  vendor_gateway: [
    host,
    port(),
    union("protocol_details", "protocol", { OPC_DA: [string("server_name", R)], PVI: [string("path", R)], OTHER: [] }),
  ],
  odac: [
    host,
    integer("port", { ...O, default: 2020, min: 0, max: 65_535 }),
    oneOf("protocol_override", ["odac", "host"], { ...O, nullable: true, ours: { default: null } }),
  ],
  plastcontrol: [host, port(), union("readout_mode", "type", { active: [], passive: [] })],
  s7plus: [
    host,
    port(),
    oneOf("destination_tsap", ["SIMATIC-ROOT-ES", "SIMATIC-ROOT-HMI"], { ...O, default: "SIMATIC-ROOT-ES" }),
    union("password", "type", { none: [], configured: [] }),
  ],
};

/** Details as they are read, by type (2.2). */
export const READ_DETAILS = READ;

// 2.4: the differences to 2.2, and the bound on ports that is ours for all but odac.

/** A host where it is given: API-V2 has a field for the port, and no scheme in it. */
const givenHost = string("host", {
  ...R,
  ours: {
    minLength: 1,
    takes: ["192.168.0.10", "press-1.example", "fd00::1", "fe80::1%eth0", "x"],
    refuses: ["", "192.168.0.10:502", "[fd00::1]:502", "tcp://press-1", "press 1", " press-1", "press-1/"],
  },
});
/** An interval or a limit where it is given. */
const FROM_ONE = { min: 1 };

const variant = (type: string): readonly Row[] => {
  const shape = READ[type];
  if (shape === undefined) throw new Error(`API-V2 2.2 has no type ${type}`);
  return replaced(
    shape.map((row) => (row.field === "port" ? { ...row, ours: { min: 0, max: 65_535 } } : row)),
    givenHost,
  );
};

/** Details as they are created, by type (2.4). */
export const CREATE_DETAILS: typeof READ_DETAILS = {
  vendor_a: variant("vendor_a"),
  modbus_tcp: variant("modbus_tcp"),
  s7: variant("s7"),
  vendor_b: variant("vendor_b"),
  fins: variant("fins"),
  opcua: replaced(
    variant("opcua"),
    string("endpoint_url", {
      ...R,
      ours: {
        takes: ["opc.tcp://10.0.0.7:4840/ua", "opc.tcp://plc:4840"],
        refuses: ["", "http://10.0.0.7", "10.0.0.7:4840", "opc.tcp://"],
      },
    }),
    union("user_identity", "type", { Anonymous: [], UserNamePassword: [string("username", R), string("password", R)] }),
  ),
  vendor_gateway: replaced(
    variant("vendor_gateway"),
    union("protocol_details", "protocol", { OPC_DA: [string("server_name", R)], PVI: [string("path", R)] }),
  ),
  odac: without(variant("odac"), "protocol_override"),
  plastcontrol: replaced(variant("plastcontrol"), union("readout_mode", "type", { active: [] })),
  s7plus: replaced(variant("s7plus"), union("password", "type", { none: [], set: [string("value", { ...R, minLength: 1 })] }, O)),
};

// 2.3

/** The fourteen reasons with their payloads (2.3). */
export const REASONS: Readonly<Record<string, readonly Row[]>> = {
  LOOKUP_ERROR: [],
  NO_ROUTE_TO_HOST: [],
  HOST_DOWN: [],
  NETWORK_UNREACHABLE: [],
  CONNECTION_REFUSED: [],
  CONNECTION_RESET: [],
  CONNECTION_CLOSED: [],
  TIMEOUT: [],
  VENDOR_GATEWAY_ERROR: [],
  OPC_UA_ERROR_RESPONSE: [
    integer("code", R),
    // Always present, null where not known (design/failures).
    string("name", { ...O, nullable: true, ours: { required: true } }),
    string("description", { ...O, nullable: true, ours: { required: true } }),
    string("reason", { ...O, nullable: true, ours: { required: true } }),
  ],
  OPC_UA_NO_MATCHING_ENDPOINT_POLICY: [
    string("endpoint_url", R),
    string("endpoint_security_policy_uri", R),
    string("message_security_mode", R),
    string("token_type", R),
    string("token_security_policy_uri", R),
  ],
  S7PLUS_ERROR: [oneOf("category", ["AUTHENTICATION", "UNKNOWN"], R)],
  FINS_NETWORK_RELAY_ERROR: [
    integer("response_code", R),
    integer("requested_node", R),
    integer("relay_network", R),
    integer("relay_node", R),
  ],
  UNKNOWN: [],
};

export const READOUT_STATUS: Table = {
  section: "2.3",
  shape: [
    instant("last_readout_at", { ...R, nullable: true }),
    integer("configured_variables", R),
    union("state", "type", { OK: [], UNKNOWN: [], ERROR: [union("reason", "type", REASONS), instant("error_at")] }),
  ],
};

const CAPABILITIES: readonly Row[] = [boolean("variable_discovery", R)];

// 2.1, 2.4

export const DATA_SOURCE: Table = {
  section: "2.1",
  shape: [
    uuid("uuid"),
    string("type", R),
    integer("readout_limit", { ...R, nullable: true }),
    integer("readout_interval", R),
    object("readout_status", READOUT_STATUS.shape),
    string("name", R),
    uuid("collector"),
    string("manufacturer", { ...R, nullable: true }),
    string("device_model", { ...R, nullable: true }),
    string("note", { ...R, nullable: true }),
    object("capabilities", CAPABILITIES),
    uuid("machine"),
    instant("last_readout_at", { ...R, nullable: true }),
    union("details", "type", READ_DETAILS, { ...R, nullable: true, form: "stripping" }),
  ],
};

export const DATA_SOURCE_CREATE: Table = {
  section: "2.4",
  shape: [
    string("name", R),
    uuid("collector"),
    uuid("machine"),
    string("manufacturer", { ...O, nullable: true, ours: { default: null } }),
    string("device_model", { ...O, nullable: true, ours: { default: null } }),
    string("note", { ...O, nullable: true, ours: { default: null } }),
    union("details", "type", CREATE_DETAILS),
  ],
};

/** The document does not show it: design/api-decisions, "PATCH bodies". */
export const DATA_SOURCE_PATCH: Table = {
  section: "4.1",
  shape: [
    string("name", O),
    string("manufacturer", { ...O, nullable: true }),
    string("device_model", { ...O, nullable: true }),
    string("note", { ...O, nullable: true }),
    uuid("machine", O),
    integer("readout_interval", { ...O, ours: FROM_ONE }),
    integer("readout_limit", { ...O, nullable: true, ours: FROM_ONE }),
    { field: "details", type: "record", ...O },
  ],
};

// 2.5: the table says which fields; which are required and their defaults are ours.

const TOPIC = {
  takes: ["plant/press-1", "plant/{source}/{variable}", "plant/{machine}", "a}b", "ü", "/", "x".repeat(65_535)],
  refuses: ["", "plant/+/x", "plant/#", "a\0b", "\ud800", "{", "{{source}}", "{source", "x".repeat(65_536), "ü".repeat(32_768)],
};

const MQTT: readonly Row[] = [
  string("host", { ...R, ours: { minLength: 1 } }),
  integer("port", { ...O, ours: { default: 1883 } }),
  string("client_id", { ...O, ours: { minLength: 1 } }),
  string("topic", { ...R, ours: TOPIC }),
  integer("publish_interval", O),
];

// The document names the two other kinds (1) and the list of users (4.2), and shows none of their fields.

const username = string("username", { ...R, ours: { minLength: 1 } });
const OPCUA: readonly Row[] = [
  integer("port", { ...O, ours: { default: 4840 } }),
  string("path", {
    ...O,
    ours: { default: "/", takes: ["/", "/collector", "/a/b-c"], refuses: ["", "collector", "/a b", "/a?b", "/a#b"] },
  }),
  list("security_modes", ["None", "Sign", "SignAndEncrypt"], { ...O, sample: ["None"], ours: { default: ["Sign", "SignAndEncrypt"] } }),
  list("security_policies", POLICIES, {
    ...O,
    sample: ["Basic256Sha256"],
    ours: { default: ["Aes128-Sha256-RsaOaep", "Aes256-Sha256-RsaPss", "Basic256Sha256"] },
  }),
  boolean("anonymous", { ...O, ours: { default: false } }),
  array("users", [username], { ...O, unique: "username", ours: { default: [] } }),
];
const PLATFORM: readonly Row[] = [integer("publish_interval", O)];

/** Sink details as they are read, by type (2.5). */
export const READ_SINK_DETAILS: Readonly<Record<string, readonly Row[]>> = { mqtt: MQTT, opcua: OPCUA, platform: PLATFORM };
/** Sink details as they are created, by type (2.5). */
export const CREATE_SINK_DETAILS: typeof READ_SINK_DETAILS = {
  mqtt: replaced(
    MQTT,
    givenHost,
    integer("port", { ...O, ours: { default: 1883, min: 0, max: 65_535 } }),
    integer("publish_interval", { ...O, ours: FROM_ONE }),
  ),
  opcua: replaced(
    OPCUA,
    integer("port", { ...O, ours: { default: 4840, min: 0, max: 65_535 } }),
    array("users", [username, string("password", { ...R, ours: { minLength: 1 } })], { ...O, unique: "username", ours: { default: [] } }),
  ),
  platform: replaced(PLATFORM, integer("publish_interval", { ...O, ours: FROM_ONE })),
};

export const DATA_SINK: Table = {
  section: "2.5",
  shape: [
    string("name", { ...R, minLength: 1, maxLength: 200, ours: { nullable: true } }),
    uuid("collector"),
    uuid("uuid"),
    oneOf("type", ["mqtt", "opcua", "platform"], R),
    union("details", "type", READ_SINK_DETAILS, { ...R, form: "stripping" }),
  ],
};

export const DATA_SINK_CREATE: Table = {
  section: "4.2",
  shape: [
    string("name", { ...O, nullable: true, minLength: 1, maxLength: 200, ours: { default: null } }),
    uuid("collector"),
    union("details", "type", CREATE_SINK_DETAILS),
  ],
};

export const DATA_SINK_PATCH: Table = {
  section: "4.2",
  shape: [string("name", { ...O, minLength: 1, maxLength: 200 }), { field: "details", type: "record", ...O }],
};

export const SITE: Table = { section: "2.6", shape: [uuid("uuid"), string("name", R)] };

export const SITE_PAGE: Table = {
  section: "2.7",
  shape: [array("data", SITE.shape), object("metadata", [string("next_cursor", { ...R, nullable: true })])],
};

export const SITE_CREATE: Table = { section: "4.3", shape: [string("name", R)] };
/** As with data sources: design/api-decisions, "PATCH bodies". */
export const SITE_PATCH: Table = { section: "4.3", shape: [string("name", O)] };
