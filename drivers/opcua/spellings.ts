import { type Answer, type Form, typed } from "../lib/spellings.ts";

/** Data types of OPC UA and of IEC 61131-3, by their names here; a value without one brings its own. */
const TYPES: Readonly<Record<string, string>> = {
  boolean: "bool",
  bool: "bool",
  sbyte: "int8",
  sint: "int8",
  byte: "uint8",
  usint: "uint8",
  int16: "int16",
  int: "int16",
  uint16: "uint16",
  uint: "uint16",
  int32: "int32",
  dint: "int32",
  uint32: "uint32",
  udint: "uint32",
  int64: "int64",
  lint: "int64",
  uint64: "uint64",
  ulint: "uint64",
  float: "float32",
  real: "float32",
  double: "float64",
  lreal: "float64",
  string: "string",
};
const ID_TYPES: Readonly<Record<string, string>> = { numeric: "i", string: "s", guid: "g", opaque: "b" };
const JSON_ID_TYPES = ["i", "s", "g", "b"] as const;

/** The namespace of the variables of an S7-1500 or S7-1200. */
const SIEMENS = "http://www.siemens.com/simatic-s7-opcua";

const typeOf = (word: string | undefined): string | undefined => {
  const name = word?.toLowerCase() ?? "";
  return Object.hasOwn(TYPES, name) ? TYPES[name] : undefined;
};

/** In s=, a `#` begins a part of the value. */
const escaped = (id: string): string => id.replaceAll(/#|%(?:25)*23/g, (one) => (one === "#" ? "%23" : one.replace("%", "%25")));

const node = (namespace: string | number | undefined, kind: string, id: string): string =>
  `${Number(namespace ?? 0) === 0 ? "" : `ns=${Number(namespace)};`}${kind}=${kind === "s" ? escaped(id) : id}`;

/** A number may be a number, or a text of digits. */
function ofEither(namespace: string | undefined, id: string): Answer {
  if (!/^\d{1,10}$/.test(id)) return { write: node(namespace, "s", id) };
  if (Number(namespace) === 0) return { write: node(namespace, "i", id) };
  return {
    either: [
      { write: node(namespace, "i", id), when: "for a numeric identifier" },
      { write: node(namespace, "s", id), when: "for a text of digits" },
    ],
  };
}

/** `0:Objects`, `2:Plant`: elements of a path from the root, which namespace 0 leaves out. */
const pathOf = (names: readonly string[]): string =>
  names
    .filter((name, at) => !(at === 0 && /^(?:0:)?Root$/.test(name)))
    .map((name) => `/${name.trim().replace(/^0:/, "").replaceAll(/[&/#]/g, "&$&")}`)
    .join("");

function fromJson(text: string): Answer | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || !("Id" in value)) return undefined;
  const { Id: id, IdType: idType = 0, Namespace: namespace = 0 } = value as Readonly<Record<"Id" | "IdType" | "Namespace", unknown>>;
  const kind = JSON_ID_TYPES[Number(idType)];
  if (kind === undefined) return undefined;
  if (typeof namespace === "string") return { write: `nsu=${namespace.replaceAll("%", "%25").replaceAll(";", "%3B")};${kind}=${id}` };
  return { write: node(String(namespace), kind, String(id)) };
}

/** The more particular first. */
export const FORMS: readonly Form[] = [
  {
    tool: "EMQX Neuron",
    pattern: /^(?<namespace>\d{1,5})!(?<id>.{1,250})$/,
    answer: ({ namespace, id = "" }) => ofEither(namespace, id),
  },
  {
    tool: "plc4x",
    pattern:
      /^(?:ns=(?<namespace>\d{1,5});)?(?<kind>[igb])=(?<id>[^;]{1,120})(?:;a=(?<attribute>[^;|]{1,30}))?(?:;(?<type>[A-Z_]{3,15}))?(?:\|.{1,200})?$/,
    answer({ namespace, kind = "", id = "", attribute, type }) {
      if (attribute === undefined && type === undefined) return undefined;
      if (attribute !== undefined && !/^(?:Value|13)$/.test(attribute))
        return { none: `the attribute ${attribute} is not read, only the value of a node: ${node(namespace, kind, id)}` };
      return { write: typed(node(namespace, kind, id), typeOf(type)) };
    },
  },
  {
    tool: "Node-RED (node-red-contrib-opcua)",
    pattern: /^(?:ns=(?<namespace>\d{1,5});)?(?<kind>[igb])=(?<id>[^;]{1,120});datatype=(?<type>[A-Za-z0-9]{3,20})(?: ?Array)?$/i,
    answer: ({ namespace, kind = "", id = "", type }) => ({ write: typed(node(namespace, kind.toLowerCase(), id), typeOf(type)) }),
  },
  {
    tool: "Telegraf",
    pattern: /^(?<line>[{\s]{0,4}\w{1,30} ?= ?.*identifier.*)$/,
    answer({ line = "" }) {
      const field = (name: string): string | undefined => new RegExp(String.raw`\b${name}\s{0,4}=\s{0,4}"([^"]{0,200})"`).exec(line)?.[1];
      const [namespace, kind, id] = [field("namespace"), field("identifier_type"), field("identifier")];
      return namespace === undefined || kind === undefined || id === undefined ? undefined : { write: node(namespace, kind, id) };
    },
  },
  {
    tool: "UaExpert",
    pattern: /^NS(?<namespace>\d{1,5})\|(?<kind>Numeric|String|Guid|Opaque)\|(?<id>.{1,250})$/i,
    answer: ({ namespace, kind = "", id = "" }) => ({ write: node(namespace, ID_TYPES[kind.toLowerCase()] ?? "s", id) }),
  },
  {
    tool: "Python (asyncua)",
    pattern:
      /^(?:ua\.)?NodeId\((?:Identifier=)?(?:'(?<text>[^']{1,200})'|"(?<quoted>[^"]{1,200})"|(?<number>\d{1,10})), ?(?:NamespaceIndex=)?(?<namespace>\d{1,5})(?:, ?[^()]{1,80})?\)$/,
    answer: ({ text, quoted, number, namespace }) => ({
      write: node(namespace, number === undefined ? "s" : "i", number ?? text ?? quoted ?? ""),
    }),
  },
  {
    tool: "Python (asyncua)",
    pattern: /^\[(?<list>(?:["']\d{1,5}:[^"']{1,100}["'],? ?){1,20})\]$/,
    answer: ({ list = "" }) => ({ write: pathOf([...list.matchAll(/["']([^"']+)["']/g)].map(([, name = ""]) => name)) }),
  },
  {
    tool: "Python (asyncua) or UaExpert",
    pattern: /^(?<path>(?:0:)?(?:Root|Objects)(?:\/(?:\d{1,5}:)?[^/]{1,100}){1,20})$/,
    answer: ({ path = "" }) => ({ write: pathOf(path.split("/")) }),
  },
  { tool: "JSON of OPC UA", pattern: /^(?<json>\{.{1,280}\})$/, answer: ({ json = "" }) => fromJson(json) },
  {
    tool: "OPC UA for relative paths",
    pattern: /^<[#!]{0,2}[^<>]{1,60}>.{1,200}$/,
    answer: () => ({
      none: "kinds of references are not named here; write the path from the root with slashes, for example /Objects/2:Plant/2:Temp",
    }),
  },
  {
    tool: "Ignition",
    pattern: /^(?<path>\[[^[\]]{1,60}\].{1,200})$/,
    answer: ({ path = "" }) => ({ write: `ns=1;s=${escaped(path)}`, because: "the server of Ignition has its devices in namespace 1" }),
  },
  {
    tool: "WinCC OA",
    pattern: /^[^$]{1,60}\$[^$]{0,60}\$\d\$\d\$(?<id>(?:ns=|nsu=|[isgb]=).{1,200})$/,
    answer: ({ id = "" }) => ({ write: id }),
  },
  {
    tool: "TIA Portal",
    pattern: /^(?<symbol>"[^"]{1,128}"(?:\.(?:"[^"]{1,128}"|[A-Za-z_]\w{0,127})(?:\[[\d,]{1,20}\])?){0,20})$/,
    answer: ({ symbol = "" }) => ({
      write: `nsu=${SIEMENS};s=${escaped(symbol.replaceAll(/\.([A-Za-z_]\w*)/g, '."$1"'))}`,
      because: "that is the namespace of an S7-1500",
    }),
  },
  {
    tool: "KEPServerEX",
    pattern: /^(?<id>[A-Za-z_][\w -]{0,60}(?:\.[A-Za-z_][\w -]{0,60}){1,8})$/,
    answer: ({ id = "" }) => ({
      write: `ns=2;s=${id}`,
      because: "KEPServerEX has its tags in namespace 2; collector browse shows the node ids of any server",
    }),
  },
];
