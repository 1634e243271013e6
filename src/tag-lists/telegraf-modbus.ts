import type { Cells } from "../configuration/variable-file.ts";
import type { TagEntry } from "./format.ts";
import { type JsonObject, objectsIn, textOf } from "./json-text.ts";
import { type ModbusArea, type ModbusOrder, modbusNumber, modbusPlace, NO_PLACE, numberOf } from "./modbus-place.ts";
import { hasEnvironment, IN_ENVIRONMENT, joined } from "./telegraf-text.ts";

/**
 * Orders of inputs.modbus (configuration_register.go, type_conversions*.go of influxdata/telegraf). Words of four registers have our letters too:
 * CDAB is the lowest word first.
 */
const ORDERS: Readonly<Record<string, ModbusOrder>> = {
  ...{ "": "ABCD", ABCD: "ABCD", BADC: "BADC", CDAB: "CDAB", DCBA: "DCBA" },
  ...{ "MSW-BE": "ABCD", "MSW-LE": "BADC", "LSW-BE": "CDAB", "LSW-LE": "DCBA" },
  ...{ AB: "ABCD", BA: "DCBA", ABCDEFGH: "ABCD", BADCFEHG: "BADC", GHEFCDAB: "CDAB", HGFEDCBA: "DCBA" },
};
/** The order in which the other byte of a register comes first. */
const SWAPPED: Readonly<Record<ModbusOrder, ModbusOrder>> = { ABCD: "BADC", BADC: "ABCD", CDAB: "DCBA", DCBA: "CDAB" };

const LISTS: readonly (readonly [key: string, area: ModbusArea])[] = [
  ["coils", "coil"],
  ["discrete_inputs", "discrete"],
  ["holding_registers", "holding"],
  ["input_registers", "input"],
];
const AREAS: ReadonlyMap<string, ModbusArea> = new Map([
  ["", "holding"],
  ["holding", "holding"],
  ["input", "input"],
  ["coil", "coil"],
  ["discrete", "discrete"],
]);

/** A field of any of the three styles. */
interface Field {
  readonly at: string;
  readonly measurement: string;
  readonly name: string;
  readonly unit: unknown;
  readonly area: ModbusArea | undefined;
  readonly start: unknown;
  /** In registers; undefined: the type says it. */
  readonly registers: number | undefined;
  readonly type: string;
  readonly order: string;
  readonly scale: unknown;
  readonly output: string;
  readonly bit: unknown;
  readonly length: unknown;
}

const DIGITS_KEPT =
  "Telegraf drops the digits behind the point of a whole number that it scales, where its output is one; here they are kept";
const OTHER_LINE = "Telegraf does not read it over Modbus TCP: the data source needs a gateway that speaks Modbus TCP";

/** The fields of one instance of inputs.modbus, in the styles register, request and metric. */
export function* inputsModbus(instance: JsonObject, device: string): Generator<TagEntry> {
  const workarounds = objectsIn([instance["workarounds"]])[0];
  const location = textOf(workarounds?.["string_register_location"]);
  const mode = textOf(instance["transmission_mode"]);
  if (!/^tcp:/i.test(textOf(instance["controller"])) || !/^(tcp|auto|)$/i.test(mode)) yield { device, note: `${device}: ${OTHER_LINE}` };
  const fields = [...fieldsIn(instance)];
  const nameOf = ({ measurement, name }: Field): string => joined(measurement, name);
  const units = new Map<string, Set<string>>();
  for (const field of fields) units.set(nameOf(field), (units.get(nameOf(field)) ?? new Set()).add(String(numberOf(field.unit) ?? "")));
  for (const field of fields) {
    // Requests of several units may have the same fields.
    const name = (units.get(nameOf(field))?.size ?? 0) > 1 ? `${numberOf(field.unit) ?? ""}/${nameOf(field)}` : nameOf(field);
    const cells = cellsOf(field, location);
    const place = `${device}, ${field.at}, ${field.name}`;
    if (typeof cells === "string") yield { device, place, name, problem: cells };
    else yield { device, place, tag: { name, ...cells }, from: `${field.at} ${textOf(field.start)}` };
    if (typeof cells !== "string" && isCutOff(field)) yield { device, note: DIGITS_KEPT };
  }
}

function* fieldsIn(instance: JsonObject): Generator<Field> {
  const style = textOf(instance["configuration_type"]) || "register";
  if (style === "register")
    for (const [key, area] of LISTS) for (const field of objectsIn(instance[key])) yield ofRegister(field, key, area, instance["slave_id"]);
  else
    for (const group of objectsIn(instance[style === "request" ? "request" : "metric"]))
      for (const field of objectsIn(group["fields"])) {
        if (field["omit"] === true) continue;
        const register = textOf(style === "request" ? group["register"] : field["register"]);
        yield {
          at: `${style} ${register || "holding"}`,
          measurement: textOf(field["measurement"]) || textOf(group["measurement"]),
          name: textOf(field["name"]),
          // Without a unit, Telegraf asks unit 0.
          unit: group["slave_id"] ?? 0,
          area: AREAS.get(register),
          start: field["address"],
          registers: undefined,
          type: textOf(field["type"]),
          order: textOf(group["byte_order"]),
          scale: field["scale"],
          output: textOf(field["output"]),
          bit: field["bit"],
          length: field["length"],
        };
      }
}

function ofRegister(field: JsonObject, key: string, area: ModbusArea, unit: unknown): Field {
  const addresses = Array.isArray(field["address"]) ? (field["address"] as readonly unknown[]) : [];
  const isRow = addresses.every((one, i) => numberOf(one) === (numberOf(addresses[0]) ?? Number.NaN) + i);
  return {
    at: key,
    measurement: textOf(field["measurement"]),
    name: textOf(field["name"]),
    unit: unit ?? 0,
    area,
    start: isRow ? addresses[0] : Number.NaN,
    registers: addresses.length,
    type: fixed(textOf(field["data_type"]), addresses.length),
    order: textOf(field["byte_order"]),
    scale: field["scale"],
    output: /FIXED$|^FLOAT32$/i.test(textOf(field["data_type"])) ? "FLOAT64" : "",
    bit: field["bit"],
    length: /^STRING$/i.test(textOf(field["data_type"])) ? addresses.length : undefined,
  };
}

/** `FIXED` and `UFIXED` are whole numbers of as many registers as the field has; `FLOAT32` is the old name of the latter. */
function fixed(type: string, registers: number): string {
  const bits = registers * 16;
  if (/^FIXED$/i.test(type)) return `INT${bits}`;
  if (/^(UFIXED|FLOAT32)$/i.test(type)) return `UINT${bits}`;
  return type.replace(/-IEEE$/i, "");
}

function cellsOf(field: Field, location: string): Omit<Cells, "name"> | string {
  const { area, name, type } = field;
  if (name === "") return "has no name";
  if (hasEnvironment(name, field.measurement)) return IN_ENVIRONMENT;
  if (area === undefined) return "its register is unknown: expected coil, discrete, holding or input";
  const start = numberOf(field.start) ?? Number.NaN;
  const place = { area, start, unit: numberOf(field.unit) };
  if (area === "coil" || area === "discrete") return addressed(modbusPlace(place), "bool");
  const order = Object.hasOwn(ORDERS, field.order) ? ORDERS[field.order] : undefined;
  if (order === undefined) return `the byte order ${JSON.stringify(field.order)} is not known`;
  if (/^BIT$/i.test(type)) return addressed(modbusPlace({ ...place, bit: numberOf(field.bit) ?? 0, order }), "bool");
  if (/^STRING$/i.test(type)) {
    if (location !== "" && location !== "both") return "a text with one character in each register is not read";
    const length = numberOf(field.length) ?? Number.NaN;
    return Number.isInteger(length) && length > 0 ? addressed(modbusPlace({ ...place, order }), `string(${2 * length})`) : NO_PLACE;
  }
  const [, sign, half] = /^(U?)INT8([LH])$/i.exec(type) ?? [];
  const [known, registers] = half === undefined ? (modbusNumber(type) ?? []) : [`${sign?.toLowerCase()}int8`, 1];
  if (known === undefined) return `the data type ${JSON.stringify(type)} is not known`;
  if (field.registers !== undefined && field.registers !== registers)
    return `its type takes ${registers} registers, and its address names ${field.registers}`;
  const scale = numberOf(field.scale) ?? 0;
  if (!Number.isFinite(scale)) return "its scale is not a number";
  const cells = addressed(modbusPlace({ ...place, order: half?.toUpperCase() === "H" ? SWAPPED[order] : order }), known);
  // 0 is the absence of a scale.
  return typeof cells === "string" || scale === 0 || scale === 1 ? cells : { ...cells, factor: String(scale) };
}

const addressed = (address: string | undefined, type: string): Omit<Cells, "name"> | string =>
  address === undefined ? NO_PLACE : { address, type };

/** A whole number that is scaled and stays one in Telegraf. */
function isCutOff({ type, scale, output, at }: Field): boolean {
  const isScaled = ![0, 1].includes(numberOf(scale) ?? 0);
  const isWhole = /^(U?INT64)$/i.test(output) || (output === "" && at.endsWith("_registers"));
  return isScaled && isWhole && /^U?INT/i.test(type);
}
