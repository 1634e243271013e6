import type { TagEntry, TagListFormat, Wanted } from "./format.ts";
import { isObject, type JsonObject, objectsIn, textOf } from "./json-text.ts";
import { type ModbusArea, modbusPlace, NO_PLACE, numberOf } from "./modbus-place.ts";

/** `dataType` of node-red-contrib-modbus, by the function codes 1 to 4. */
const AREAS: Readonly<Record<string, ModbusArea>> = {
  Coil: "coil",
  Input: "discrete",
  HoldingRegister: "holding",
  InputRegister: "input",
};
const ENDPOINT = "s7 endpoint";
const READERS: ReadonlySet<string> = new Set(["modbus-read", "modbus-getter"]);
/** Nodes whose addresses come with a message. */
const DYNAMIC: ReadonlySet<string> = new Set(["modbus-flex-getter", "modbus-flex-sequencer"]);

/** Flows of Node-RED: variables of node-red-contrib-s7, and reading nodes of node-red-contrib-modbus. */
export const nodeRed: TagListFormat = {
  program: "Node-RED",
  what: "flows (JSON)",
  read({ json }, wanted) {
    if (!json || "fault" in json) return undefined;
    const nodes = nodesOf(json.value);
    return nodes.some(isOurs) ? entries(nodes, wanted) : undefined;
  },
};

/** A flow file is a list; what the API gives is an object of `flows`, or of `nodes` and `configs`. */
function nodesOf(value: unknown): readonly JsonObject[] {
  if (!isObject(value)) return objectsIn(value);
  return ["flows", "nodes", "configs"].flatMap((key) => objectsIn(value[key]));
}

const isOurs = ({ id, type }: JsonObject): boolean =>
  typeof id === "string" && typeof type === "string" && (type === ENDPOINT || READERS.has(type) || DYNAMIC.has(type));

function* entries(nodes: readonly JsonObject[], { type }: Wanted): Generator<TagEntry> {
  if (type !== "s7" && type !== "modbus_tcp") {
    yield {
      refusal: `holds variables of node-red-contrib-s7 and node-red-contrib-modbus, which data sources of the types s7 and modbus_tcp read, not ${type}`,
    };
    return;
  }
  let isFound = false;
  for (const entry of type === "s7" ? s7Entries(nodes) : modbusEntries(nodes)) {
    isFound = true;
    yield entry;
  }
  if (!isFound)
    yield { refusal: `has no ${type === "s7" ? ENDPOINT : "modbus-read"} node, whose variables a data source of the type ${type} reads` };
}

const isOff = (node: JsonObject): boolean => node["d"] === true;

function* s7Entries(nodes: readonly JsonObject[]): Generator<TagEntry> {
  const endpoints = nodes.filter(({ type }) => type === ENDPOINT);
  for (const [i, device] of namesOf(endpoints, ({ address }) => textOf(address)).entries())
    for (const { name, addr } of objectsIn(endpoints[i]?.["vartable"]))
      yield { device, place: `${device}, ${textOf(name)}`, tag: { name: textOf(name), address: textOf(addr) } };
}

const WHOLE_REGISTERS =
  "a reading node of Node-RED gives whole registers: each is a list of uint16 here; give what it holds a type of its own with collector variables add";

function* modbusEntries(nodes: readonly JsonObject[]): Generator<TagEntry> {
  const clients = nodes.filter(({ type }) => type === "modbus-client");
  const names = namesOf(clients, ({ tcpHost, tcpPort }) => `${textOf(tcpHost)}:${textOf(tcpPort)}`);
  const byId = new Map(clients.map((client, i) => [textOf(client["id"]), { client, device: names[i] ?? "" }]));
  for (const node of nodes) {
    const type = textOf(node["type"]);
    if (!READERS.has(type) && !DYNAMIC.has(type)) continue;
    const { client, device = textOf(node["server"]) } = byId.get(textOf(node["server"])) ?? {};
    const name = textOf(node["name"]) || textOf(node["topic"]) || `${textOf(node["dataType"])} ${textOf(node["adr"])}`;
    const at = { device, place: `${device}, node ${textOf(node["id"])}` };
    if (client && textOf(client["clienttype"]) !== "tcp")
      yield { device, note: `${device}: Node-RED reads it over a serial line: the data source needs Modbus TCP` };
    if (DYNAMIC.has(type)) {
      yield { ...at, name, problem: `is a ${type}, whose addresses come with messages and are not in the file` };
      continue;
    }
    const area = AREAS[textOf(node["dataType"])];
    const start = numberOf(node["adr"]) ?? Number.NaN;
    const unit = numberOf(node["unitid"]) ?? numberOf(client?.["unit_id"]);
    const address = area && modbusPlace({ area, start, unit, count: numberOf(node["quantity"]) ?? Number.NaN });
    if (address === undefined) yield { ...at, name, problem: area ? NO_PLACE : "its dataType is not known" };
    else {
      const isBits = area === "coil" || area === "discrete";
      const status = isOff(node) ? { status: "INACTIVE" } : {};
      yield { ...at, tag: { name, address, type: isBits ? "bool" : "uint16", ...status }, from: `${textOf(node["dataType"])} ${start}` };
      if (!isBits) yield { device, note: WHOLE_REGISTERS };
    }
  }
}

/** The name of each node, or where it connects to; with that in addition where several have one name. */
function namesOf(nodes: readonly JsonObject[], connectionOf: (node: JsonObject) => string): readonly string[] {
  const own = nodes.map((node) => textOf(node["name"]) || connectionOf(node));
  const counts = new Map<string, number>();
  for (const name of own) counts.set(name, (counts.get(name) ?? 0) + 1);
  return own.map((name, i) => {
    const node = nodes[i] ?? {};
    return (counts.get(name) ?? 0) > 1 ? `${name} (${connectionOf(node)}, ${textOf(node["id"])})` : name;
  });
}
