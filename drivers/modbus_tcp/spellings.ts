import { type Answer, type Form, type Meaning, typed } from "../lib/spellings.ts";
import type { Area } from "./frames.ts";

/** Types as other tools name them, by their names here. */
const TYPES: Readonly<Record<string, string>> = {
  BOOL: "bool",
  BIT: "bool",
  SINT: "int8",
  INT8L: "int8",
  USINT: "uint8",
  BYTE: "uint8",
  UINT8L: "uint8",
  INT: "int16",
  INT16: "int16",
  UINT: "uint16",
  UINT16: "uint16",
  WORD: "uint16",
  DINT: "int32",
  INT32: "int32",
  UDINT: "uint32",
  UINT32: "uint32",
  DWORD: "uint32",
  LINT: "int64",
  INT64: "int64",
  ULINT: "uint64",
  UINT64: "uint64",
  LWORD: "uint64",
  REAL: "float32",
  FLOAT: "float32",
  FLOAT32: "float32",
  "FLOAT32-IEEE": "float32",
  LREAL: "float64",
  DOUBLE: "float64",
  FLOAT64: "float64",
  "FLOAT64-IEEE": "float64",
  FLOAT16: "FLOAT16",
  "FLOAT16-IEEE": "FLOAT16",
  BCD: "BCD",
  LBCD: "LBCD",
};
const AREA_OF_DIGIT: Readonly<Record<string, Area>> = { 0: "coil", 1: "discrete", 3: "input", 4: "holding" };
const AREA_OF_WORD: Readonly<Record<string, Area>> = {
  HR: "holding",
  IR: "input",
  C: "coil",
  DI: "discrete",
  DO: "coil",
  "HOLDING-REGISTER": "holding",
  "INPUT-REGISTER": "input",
  COIL: "coil",
  "DISCRETE-INPUT": "discrete",
  HOLDING: "holding",
  INPUT: "input",
  DISCRETE: "discrete",
  DISCRETE_INPUT: "discrete",
};
const ORDERS: Readonly<Record<string, string>> = {
  AB: "ABCD",
  BA: "DCBA",
  ABCD: "ABCD",
  BADC: "BADC",
  CDAB: "CDAB",
  DCBA: "DCBA",
  BIG_ENDIAN: "ABCD",
  BIG_ENDIAN_BYTE_SWAP: "BADC",
  LITTLE_ENDIAN: "DCBA",
  LITTLE_ENDIAN_BYTE_SWAP: "CDAB",
};
/** Order of Neuron: each letter says whether the high or the low byte, or word, comes first. */
const NEURON_ORDERS: Readonly<Record<string, string>> = { L: "ABCD", B: "DCBA", LL: "ABCD", LB: "BADC", BB: "CDAB", BL: "DCBA" };
/** Letters behind HR and IR of Ignition. */
const IGNITION_TYPES: Readonly<Record<string, string>> = {
  "": "int16",
  US: "uint16",
  I: "int32",
  UI: "uint32",
  F: "float32",
  D: "float64",
  I_64: "int64",
  UI_64: "uint64",
  BCD: "BCD",
  BCD_32: "LBCD",
};
/** Letters behind HR and IR of the AVEVA driver. */
const AVEVA_TYPES: Readonly<Record<string, string | undefined>> = { "": undefined, S: "int16", U: "uint16", L: "int32", F: "float32" };
const FUNCTION_AREAS: Readonly<Record<string, Area>> = { 1: "coil", 2: "discrete", 3: "holding", 4: "input" };
const SWAPS: Readonly<Record<string, string>> = { none: "ABCD", byte: "BADC", word: "CDAB", word_byte: "DCBA" };

interface Parts {
  readonly unit?: string | undefined;
  readonly area: Area;
  readonly start: number;
  readonly bit?: string | undefined;
  readonly count?: string | undefined;
  readonly order?: string | undefined;
  readonly type?: string | undefined;
}

function here({ unit, area, start, bit, count, order, type }: Parts): string {
  const at = `${unit === undefined ? "" : `${Number(unit)}/`}${area}:${start}${bit === undefined ? "" : `.${Number(bit)}`}`;
  const isBit = area === "coil" || area === "discrete" || bit !== undefined;
  return typed(
    `${at}${count === undefined ? "" : `[${Number(count)}]`}${order === undefined ? "" : `@${order}`}`,
    isBit || type === "bool" ? undefined : type,
  );
}

/** Undefined: it has no such entry. */
const entry = <T>(table: Readonly<Record<string, T>>, key: string | undefined): T | undefined =>
  key !== undefined && Object.hasOwn(table, key) ? table[key] : undefined;

const typeOf = (word: string | undefined): string | undefined => entry(TYPES, word?.toUpperCase());

/** Both countings of a tool in which a setting decides. */
function counted(parts: Parts, by: string): Answer {
  const meanings: Meaning[] = [
    { write: here({ ...parts, start: parts.start - 1 }), when: `where ${by} counts from 1, as it does by default`, countsFrom: 1 },
    { write: here(parts), when: "where its zero-based addressing is on", countsFrom: 0 },
  ];
  return { either: meanings };
}

/** `key = value` and `"key": value` of TOML, YAML and JSON on one line. */
function fieldsOf(line: string): ReadonlyMap<string, string> {
  const fields = [...line.matchAll(/["']?([A-Za-z_]{1,30})["']?\s{0,8}[:=]\s{0,8}(?:\[([\d,\s]{1,60})\]|["']?([\w.>-]{1,40})["']?)/g)];
  return new Map(fields.map(([, key = "", list, word]) => [key.toLowerCase(), (list ?? word ?? "").trim()]));
}

const REGISTERS: readonly Area[] = ["holding", "input"];
const ALL: readonly Area[] = ["holding", "input", "coil", "discrete"];
const WHEN: Readonly<Record<Area, string>> = {
  file: "for records of files",
  holding: "for holding registers",
  input: "for input registers",
  coil: "for coils",
  discrete: "for discrete inputs",
};

/** The type of a field that takes so many registers; FIXED, UFIXED and, in `data_type`, FLOAT32 are whole numbers to Telegraf. */
function fieldType(fields: ReadonlyMap<string, string>, registers: number, quantity: string | undefined): string | undefined {
  const word = fields.get("data_type") ?? fields.get("type");
  if (word === "FIXED") return `int${registers * 16}`;
  if (word === "UFIXED" || (word === "FLOAT32" && fields.has("data_type"))) return `uint${registers * 16}`;
  if (word?.toUpperCase() === "STRING") return `string(${Number(quantity ?? 1) * 2})`;
  return typeOf(word);
}

/** The place that a line of fields names, once for each area where none of them names it. */
function answerFields(fields: ReadonlyMap<string, string>): Answer | undefined {
  const addresses = (fields.get("address") ?? "").split(",").map((one) => one.trim());
  const [first = ""] = addresses;
  if (!/^\d{1,5}$/.test(first)) return undefined;
  const quantity = fields.get("quantity") ?? fields.get("count");
  const type = fieldType(fields, addresses.length, quantity);
  const order = entry(ORDERS, fields.get("byte_order")?.toUpperCase()) ?? entry(SWAPS, fields.get("swap")?.toLowerCase());
  const area =
    entry(AREA_OF_WORD, (fields.get("register") ?? fields.get("input_type"))?.toUpperCase()) ?? entry(FUNCTION_AREAS, fields.get("fc"));
  const unit = fields.get("slave") ?? fields.get("slave_id") ?? fields.get("slaveid") ?? fields.get("unitid");
  if (unit !== undefined && !/^\d{1,3}$/.test(unit)) return undefined;
  const count = quantity !== undefined && /^\d{1,5}$/.test(quantity) && Number(quantity) > 1 && type === undefined ? quantity : undefined;
  const at = (one: Area): string => here({ unit, area: one, start: Number(first), count, order, type });
  if (area !== undefined) return { write: at(area) };
  const areas = type === undefined && order === undefined ? ALL : REGISTERS;
  return { either: areas.map((one) => ({ write: at(one), when: WHEN[one] })) };
}

const NUMBER = String.raw`(?<number>\d{1,5})`;
const BIT = String.raw`(?:\.(?<bit>\d{1,2}))?`;

/** The more particular first. */
export const FORMS: readonly Form[] = [
  {
    tool: "EMQX Neuron",
    pattern: /^(?<unit>\d{1,3})!(?<area>[0134])(?<number>\d{4,5})(?:\.(?<bit>\d{1,3})(?<chars>[HLDE])?)?(?:#(?<order>LL|LB|BB|BL|B|L))?$/,
    answer({ unit, area, number, bit, chars, order }) {
      const place = { unit, area: entry(AREA_OF_DIGIT, area) ?? "holding", start: Number(number) - 1 };
      const text = typed(here({ ...place, order: chars === "H" ? "ABCD" : "BADC" }), `string(${Number(bit)})`);
      if (chars === "D" || chars === "E")
        return {
          none: `a text with one character in each register is not read; read ${here({ ...place, count: bit })} and join the characters`,
        };
      if (chars !== undefined) return { write: text };
      if (place.start < 0)
        return { write: here({ ...place, start: 0 }), because: `with its start address 0, ${area}${number} is the first one` };
      const wanted = entry(NEURON_ORDERS, order);
      if (order === "B") return { write: here({ ...place, order: "BADC", type: "int16" }) };
      if (order !== undefined) return { write: here({ ...place, order: wanted }) };
      if (bit === undefined || area === "0" || area === "1") return { write: here({ ...place, bit }) };
      return {
        either: [
          { write: here({ ...place, bit }), when: "for a tag of the type BIT" },
          { write: text, when: "for a tag of the type STRING" },
        ],
      };
    },
  },
  {
    tool: "plc4x",
    pattern:
      /^(?:(?<area>holding-register|input-register|coil|discrete-input|extended-register):|(?<digit>[01346])(?:x(?=\d{4,5}\b)|(?=\d{4,5}[:{])|(?<=6)(?=\d{4,5}\[)))(?<number>\d{1,5})(?::(?<type>[A-Z]{3,5}))?(?:\[(?<count>\d{1,5})\])?(?:\{(?<options>[^{}]{1,80})\})?$/i,
    answer({ area, digit, number, type, count, options = "" }) {
      if (digit === "6" || area?.toLowerCase() === "extended-register")
        return {
          none: "extended registers are file records (function code 20), which are not read; ask the device for the same value in a holding register",
        };
      const of = digit === undefined ? entry(AREA_OF_WORD, area?.toUpperCase()) : entry(AREA_OF_DIGIT, digit);
      if (!of) return undefined;
      const wanted = type === undefined ? "int16" : typeOf(type);
      // `coil:1` is an address here, and another place.
      if (wanted === undefined || (area?.toLowerCase() === "coil" && type === undefined && options === "")) return undefined;
      const unit = /unit-id:\s*(\d{1,3})/.exec(options)?.[1];
      const order = entry(ORDERS, /byte-order:\s*'?([A-Z_]+)/.exec(options)?.[1]);
      return {
        write: here({ unit, area: of, start: Number(number) - 1, count, order, type: wanted }),
      };
    },
  },
  {
    tool: "Ignition",
    pattern: new RegExp(
      String.raw`^(?:\[[^\[\]]{1,60}\])?(?:(?<unit>\d{1,3})\.)?(?<area>HR|IR|C|DI)(?<type>BCD_32|BCD|US|UI_64|I_64|UI|I|F|D|S)?${NUMBER}(?::(?<chars>\d{1,3}))?${BIT}$`,
      "i",
    ),
    answer({ unit, area, type, number, chars, bit }) {
      const of = entry(AREA_OF_WORD, area?.toUpperCase());
      const letters = (type ?? "").toUpperCase();
      if (!of || (letters !== "" && of !== "holding" && of !== "input")) return undefined;
      if ((letters === "S") !== (chars !== undefined)) return undefined;
      const wanted = letters === "S" ? `string(${Number(chars)})` : entry(IGNITION_TYPES, letters);
      return counted({ unit, area: of, start: Number(number), bit, type: wanted }, "Ignition");
    },
  },
  {
    tool: "AVEVA Communication Drivers (MBTCP)",
    pattern: /^(?<number>\d{1,5}) (?<area>DO|DI|IR|HR)(?<type>[LFSU])?$/,
    answer({ number, area, type }) {
      const of = entry(AREA_OF_WORD, area);
      return of && { write: here({ area: of, start: Number(number), type: entry(AVEVA_TYPES, type ?? "") }) };
    },
  },
  {
    tool: "benthos-umh",
    pattern:
      /^[^.\s]{1,60}\.(?<area>coil|discrete|holding|input)\.(?<number>\d{1,5})\.(?<type>BIT|U?INT8[LH]|U?INT(?:16|32|64)|FLOAT(?:16|32|64)|STRING)(?<options>(?::[A-Za-z]+=[\w.]+){0,6})$/,
    answer({ area, number, type, options = "" }) {
      const of = entry(AREA_OF_WORD, area?.toUpperCase());
      if (!of) return undefined;
      if (type?.endsWith("8H")) return { none: "the high byte of a register alone is not read; read the register as uint16" };
      const option = (key: RegExp): string | undefined => key.exec(options)?.[1];
      const place = { unit: option(/:slave(?:ID)?=(\d{1,3})/), area: of, start: Number(number) };
      if (type === "STRING") return { write: here({ ...place, type: `string(${Number(option(/:length=(\d{1,3})/) ?? 1) * 2})` }) };
      return {
        write: here({
          ...place,
          bit: type === "BIT" && REGISTERS.includes(of) ? (option(/:bit=(\d{1,2})/) ?? "0") : undefined,
          type: typeOf(type),
        }),
      };
    },
  },
  {
    tool: "Telegraf, Home Assistant or Node-RED",
    pattern: /^(?<line>[{\s"'-]*[A-Za-z_]+["']?\s{0,8}[:=].*address.*|[{\s"'-]*address["']?\s{0,8}[:=].*)$/i,
    answer: ({ line = "" }) => answerFields(fieldsOf(line)),
  },
  {
    tool: "Telegraf or Kepware, with the type and order of bytes behind it",
    pattern:
      /^(?<address>(?:\d{1,3}\/)?(?:[a-z]+:\d{1,5}|\d{5,6}))[\s,;:]+(?<type>[A-Z][A-Z0-9-]{2,12})(?:[\s,;:]+(?<order>[ABCD]{4}|AB|BA))?$/i,
    answer({ address = "", type, order }) {
      const wanted = typeOf(type);
      const by = order === undefined ? undefined : entry(ORDERS, order.toUpperCase());
      if (wanted === undefined || (order !== undefined && by === undefined)) return undefined;
      return { write: typed(`${address}${by === undefined ? "" : `@${by}`}`, wanted === "bool" ? undefined : wanted) };
    },
  },
  {
    tool: "Kepware",
    pattern: /^(?<area>[0134])(?<number>\d{4,5})(?:\.(?<chars>\d{1,3})(?<order>[HL]))$/,
    answer: ({ area, number, chars, order }) => ({
      write: typed(
        here({ area: entry(AREA_OF_DIGIT, area) ?? "holding", start: Number(number) - 1, order: order === "L" ? "BADC" : "ABCD" }),
        `string(${Number(chars)})`,
      ),
    }),
  },
  {
    tool: "Kepware",
    pattern: /^(?<area>[0134])(?<number>\d{4,5})(?<blank> ?)\[(?<rows>\d{1,4})\](?: ?\[(?<columns>\d{1,4})\])?$/,
    answer: ({ area, number, blank, rows, columns }) =>
      blank !== "" || columns !== undefined
        ? {
            write: here({
              area: entry(AREA_OF_DIGIT, area) ?? "holding",
              start: Number(number) - 1,
              count: String(Number(rows) * Number(columns ?? 1)),
            }),
            ...(columns !== undefined && { because: "an array has one dimension here, row by row" }),
          }
        : undefined,
  },
  {
    tool: "Kepware or EMQX Neuron that counts from 0",
    pattern: /^(?<area>[0134])(?:0000|00000)(?:\.(?<bit>\d{1,2}))?$/,
    answer({ area, bit }) {
      const of = entry(AREA_OF_DIGIT, area) ?? "holding";
      return { write: here({ area: of, start: 0, bit }), because: `here this form counts from 1: ${area}0001 is ${of}:0` };
    },
  },
  {
    tool: "AVEVA Plant SCADA",
    pattern: /^(?<area>[34])(?<number>\d{4,5})\.16$/,
    answer: ({ area, number }) => ({
      write: here({ area: entry(AREA_OF_DIGIT, area) ?? "holding", start: Number(number) - 1, bit: "15" }),
      because: "it counts the bits of a register from 1, here they count from 0",
    }),
  },
  {
    tool: "Telegraf, Home Assistant, Node-RED or Kepware",
    pattern: /^(?<number>\d{1,4}|[25-9]\d{4})$/,
    answer({ number = "" }) {
      const [digit = "", rest] = [number.slice(0, 1), number.slice(1)];
      const of = number.length > 1 && number.length < 5 ? entry(AREA_OF_DIGIT, digit) : undefined;
      const padded: Meaning[] = of
        ? [{ write: here({ area: of, start: Number(rest) - 1 }), when: `where Kepware reads it as ${digit}${rest.padStart(4, "0")}` }]
        : [];
      return { either: [...ALL.map((area) => ({ write: here({ area, start: Number(number) }), when: WHEN[area] })), ...padded] };
    },
  },
];
