import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type YAMLMap } from "yaml";
import type { Cells } from "../configuration/variable-file.ts";
import { cutLineOf, type TagEntry, type TagListFormat, type Wanted } from "./format.ts";
import { isObject, type JsonObject, textOf } from "./json-text.ts";
import { type ModbusArea, type ModbusOrder, modbusNumber, modbusPlace, NO_PLACE, numberOf } from "./modbus-place.ts";

/** A house has some hundred KiB; the parser works in one piece. */
const MAX_CHARACTERS = 4 * 2 ** 20;
/** Values that YAML's aliases may stand for. */
const MAX_ALIASES = 100;

/** `swap` of the integration (base_platform.py of home-assistant/core): bytes within each register, and all registers in reverse. */
const ORDERS: Readonly<Record<string, ModbusOrder>> = { "": "ABCD", none: "ABCD", byte: "BADC", word: "CDAB", word_byte: "DCBA" };
const REGISTERS: Readonly<Record<string, ModbusArea>> = { "": "holding", holding: "holding", input: "input" };
const BITS: Readonly<Record<string, ModbusArea>> = { ...REGISTERS, "": "coil", coil: "coil", discrete_input: "discrete" };
/** Entities that write. */
const OTHERS: Readonly<Record<string, string>> = {
  switches: "a switch",
  lights: "a light",
  fans: "a fan",
  covers: "a cover",
  climates: "a climate",
};
const LISTS = ["sensors", "binary_sensors", ...Object.keys(OTHERS)] as const;

const LOOKS_SO = /^(?:modbus[ \t]*:|[ \t]*(?:-[ \t]+)?(?:sensors|binary_sensors)[ \t]*:[ \t]*(?:#.*)?$)/m;

/** The Modbus integration of Home Assistant: its part of `configuration.yaml`, or the file of hubs that this includes. */
export const homeAssistant: TagListFormat = {
  program: "Home Assistant",
  what: "configuration (YAML)",
  read({ text }, wanted) {
    if (!LOOKS_SO.test(text)) return undefined;
    if (text.length > MAX_CHARACTERS) return [{ refusal: `is longer than ${MAX_CHARACTERS / 2 ** 20} Mi characters; cut it into parts` }];
    return entries(text, wanted);
  },
};

function* entries(text: string, { type }: Wanted): Generator<TagEntry> {
  const lines = new LineCounter();
  let document: Document.Parsed;
  try {
    // Tags such as !secret and !include are Home Assistant's own: their values stay texts.
    document = parseDocument(text, { lineCounter: lines, merge: true, logLevel: "error", stringKeys: true });
  } catch {
    yield { refusal: "is not valid YAML: it is nested too deeply" };
    return;
  }
  const lineOf = (node: Node): number => lines.linePos(node.range?.[0] ?? 0).line;
  const [fault] = document.errors;
  if (fault) {
    // A message quotes the line, in which a secret may be: only its code is told.
    yield { place: lines.linePos(fault.pos[0]).line, refusal: `is not valid YAML (${fault.code.toLowerCase().replaceAll("_", " ")})` };
    return;
  }
  const cut = cutLineOf(text);
  if (cut !== undefined) {
    yield { place: lines.linePos(text.length).line, refusal: cut };
    return;
  }
  if (type !== "modbus_tcp") {
    yield { refusal: `holds devices of Modbus, which data sources of the type modbus_tcp read, not ${type}` };
    return;
  }
  const root = document.contents;
  const hubs = isMap(root) ? root.get("modbus", true) : root;
  if (isScalar(hubs)) {
    yield { place: lineOf(hubs), refusal: "has its Modbus devices in another file: import that one" };
    return;
  }
  const reader = new Hubs(document, lineOf);
  for (const hub of reader.maps(hubs)) yield* reader.entriesOf(hub);
}

class Hubs {
  readonly #document: Document;
  readonly #lineOf: (node: Node) => number;

  constructor(document: Document, lineOf: (node: Node) => number) {
    this.#document = document;
    this.#lineOf = lineOf;
  }

  /** The mappings of a list, or the one that is no list; aliases followed. */
  maps(node: unknown): readonly YAMLMap[] {
    const own = isAlias(node) ? node.resolve(this.#document) : node;
    if (isMap(own)) return [own];
    return isSeq(own) ? own.items.map((item) => (isAlias(item) ? item.resolve(this.#document) : item)).filter((item) => isMap(item)) : [];
  }

  #plain(node: YAMLMap): JsonObject {
    try {
      const value: unknown = node.toJS(this.#document, { maxAliasCount: MAX_ALIASES });
      return isObject(value) ? value : {};
    } catch {
      return {};
    }
  }

  *entriesOf(hub: YAMLMap): Generator<TagEntry> {
    const device = scalarOf(hub, "name") || "modbus_hub";
    const kind = scalarOf(hub, "type");
    if (kind !== "tcp")
      yield { device, note: `${device}: Home Assistant reads it over ${kind || "another line"}: the data source needs Modbus TCP` };
    for (const list of LISTS)
      for (const node of this.maps(hub.get(list, true))) {
        const entity = this.#plain(node);
        const name = textOf(entity["name"]);
        const at = { device, place: this.#lineOf(node) };
        const cells = cellsOf(list, entity);
        if (typeof cells === "string") yield { ...at, name, problem: cells };
        else yield { ...at, tag: { name, ...cells }, from: `${list} ${textOf(entity["address"])}` };
        if (typeof cells === "string") continue;
        if (unitOf(entity) === undefined) yield { device, note: NO_UNIT };
        if (LIMITS.some((key) => entity[key] !== undefined)) yield { device, note: NO_LIMITS };
      }
  }
}

const scalarOf = (map: YAMLMap, key: string): string => textOf(map.get(key));

const unitOf = (entity: JsonObject): unknown => entity["slave"] ?? entity["device_address"];
const NO_UNIT =
  "some sensors name no slave: they are read as the unit of the data source; Home Assistant takes 0 or 1 there, by its version";
const LIMITS = ["precision", "min_value", "max_value", "zero_suppress", "nan_value"] as const;
const NO_LIMITS = "precision, min_value, max_value, zero_suppress and nan_value are not taken over: values come as they are";

function cellsOf(list: (typeof LISTS)[number], entity: JsonObject): Omit<Cells, "name"> | string {
  if (Object.hasOwn(OTHERS, list)) return `is ${OTHERS[list]}; sensors and binary_sensors are read`;
  if (Object.keys(entity).length === 0) return "its aliases stand for too much";
  for (const key of ["slave_count", "virtual_count"])
    if (![0, undefined].includes(numberOf(entity[key]))) return `stands for several, by ${key}; add each with collector variables add`;
  const start = numberOf(entity["address"]) ?? Number.NaN;
  const unit = numberOf(unitOf(entity));
  return list === "sensors" ? sensor(entity, start, unit) : binarySensor(entity, start, unit);
}

function binarySensor(entity: JsonObject, start: number, unit: number | undefined): Omit<Cells, "name"> | string {
  const kind = textOf(entity["input_type"]);
  const area = Object.hasOwn(BITS, kind) ? BITS[kind] : undefined;
  if (area === undefined) return `the input_type ${JSON.stringify(kind)} is not known`;
  // The lowest bit of a register is taken.
  const bit = area === "holding" || area === "input" ? 0 : undefined;
  const address = modbusPlace({ area, start, unit, bit, ...(bit === 0 && { order: "ABCD" as const }) });
  return address === undefined ? NO_PLACE : { address, type: "bool" };
}

function sensor(entity: JsonObject, start: number, unit: number | undefined): Omit<Cells, "name"> | string {
  const [kind, swap, word] = [textOf(entity["input_type"]), textOf(entity["swap"]), textOf(entity["data_type"]) || "int16"];
  const area = Object.hasOwn(REGISTERS, kind) ? REGISTERS[kind] : undefined;
  if (area === undefined) return `the input_type ${JSON.stringify(kind)} is not known`;
  const order = Object.hasOwn(ORDERS, swap) ? ORDERS[swap] : undefined;
  if (order === undefined) return `the swap ${JSON.stringify(swap)} is not known`;
  const count = numberOf(entity["count"]);
  const address = modbusPlace({ area, start, unit, order });
  if (address === undefined) return NO_PLACE;
  const unitOfValue = textOf(entity["unit_of_measurement"]);
  const common = { address, ...(unitOfValue !== "" && { unit: unitOfValue }) };
  if (word === "string") {
    // A reversed text is in no order of ours.
    if (order === "CDAB" || order === "DCBA") return "a text whose registers are reversed is not read";
    return count !== undefined && Number.isInteger(count) && count > 0 ? { ...common, type: `string(${2 * count})` } : NO_PLACE;
  }
  const [type, registers] = modbusNumber(word === "int" ? "int16" : word === "uint" ? "uint16" : word) ?? [];
  if (type === undefined) return `the data_type ${JSON.stringify(word)} has no counterpart here; add it with collector variables add`;
  if (count !== undefined && count !== registers) return `its count is ${count}, and ${word} takes ${registers}`;
  const [scale, offset] = [numberOf(entity["scale"]) ?? 1, numberOf(entity["offset"]) ?? 0];
  if (!Number.isFinite(scale) || !Number.isFinite(offset)) return "its scale or its offset is not a number";
  return scale === 1 && offset === 0 ? { ...common, type } : { ...common, type, factor: String(scale), offset: String(offset) };
}
