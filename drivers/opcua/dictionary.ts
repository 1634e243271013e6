import { BUILT_IN_NAMES, INT32 } from "./built-in.ts";
import { standardByName } from "./standard-structures.ts";
import { type Definition, type Field, type FieldType, MAX_FIELDS } from "./structures.ts";

/** A field as a type dictionary has it. */
interface DictionaryField {
  readonly name: string;
  /** `opc:` for a type of the encoding, `ua:` for one of OPC UA, `tns:` for one of this dictionary; empty: of another. */
  readonly type: string;
  readonly lengthField?: string;
  /** A number of elements or bits that the dictionary fixes. */
  readonly length?: number;
  readonly switchField?: string;
  readonly switchValue?: number;
}

/** The types of a type dictionary (OPC 10000-3, annex D), as servers before OPC UA 1.04 describe their structures. Plain data. */
export interface Dictionary {
  readonly structures: { readonly [name: string]: readonly DictionaryField[] };
  /** Enumerations, by their bits. */
  readonly enumerations: { readonly [name: string]: number };
}

const BINARY_URI = "http://opcfoundation.org/BinarySchema/";
const UA_URI = "http://opcfoundation.org/UA/";
const MAX_TYPES = 5000;
const MASK_BITS = 32;
const TAG = /<(\/?)(?:[\w.-]+:)?(TypeDictionary|StructuredType|EnumeratedType|Field)(?=[\s/>])((?:[^>"']|"[^"]*"|'[^']*')*)>/g;
const ATTRIBUTE = /([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** The types in the XML of an OPC Binary dictionary; undefined: it is not one, or has too many. Pure. */
export function parseDictionary(xml: string): Dictionary | undefined {
  const structures: Record<string, DictionaryField[]> = Object.create(null);
  const enumerations: Record<string, number> = Object.create(null);
  const prefixes = new Map<string, string>();
  let target: string | undefined;
  let open: DictionaryField[] | undefined;
  let fields = 0;
  for (const [, closing, tag, rest = ""] of xml.replaceAll(/<!--[\s\S]*?-->/g, "").matchAll(TAG)) {
    const isStructure = tag === "StructuredType";
    if (closing === "/") {
      if (isStructure) open = undefined;
      continue;
    }
    const attributes = attributesOf(rest);
    const name = attributes.get("Name") ?? "";
    if (tag === "TypeDictionary") {
      target = attributes.get("TargetNamespace");
      for (const [key, uri] of attributes) if (key.startsWith("xmlns:")) prefixes.set(key.slice(6), uri);
    } else if (isStructure) {
      open = [];
      structures[name] = open;
      if (rest.endsWith("/")) open = undefined;
    } else if (tag === "EnumeratedType") enumerations[name] = Number(attributes.get("LengthInBits") ?? 32);
    else if (open) open.push(fieldOf(attributes, (prefix) => kindOf(prefixes.get(prefix), target)));
    if (++fields > MAX_TYPES * 10) return undefined;
  }
  return target === undefined || Object.keys(structures).length > MAX_TYPES ? undefined : { structures, enumerations };
}

const kindOf = (uri: string | undefined, target: string | undefined): string =>
  uri === BINARY_URI ? "opc:" : uri === UA_URI ? "ua:" : uri !== undefined && uri === target ? "tns:" : "";

function attributesOf(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [, name = "", double, single = ""] of text.matchAll(ATTRIBUTE)) found.set(name, unescaped(double ?? single));
  return found;
}

const unescaped = (text: string): string =>
  text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(\w+));/gi, (all, decimal?: string, hex?: string, name = "") => {
    const code = decimal === undefined ? (hex === undefined ? undefined : Number.parseInt(hex, 16)) : Number(decimal);
    if (code === undefined) return ENTITIES[String(name)] ?? all;
    return code <= 0x10_ffff ? String.fromCodePoint(code) : all;
  });

function fieldOf(attributes: ReadonlyMap<string, string>, kind: (prefix: string) => string): DictionaryField {
  const [, prefix = "", type = ""] = /^(?:([^:]*):)?([\s\S]*)$/.exec(attributes.get("TypeName") ?? "") ?? [];
  const known = kind(prefix);
  const [lengthField, switchField] = [attributes.get("LengthField"), attributes.get("SwitchField")];
  const number = (name: string): number | undefined => (attributes.has(name) ? Number(attributes.get(name)) : undefined);
  const [length, switchValue] = [number("Length"), number("SwitchValue")];
  return {
    name: attributes.get("Name") ?? "",
    type: known === "" ? "" : `${known}${type}`,
    ...(lengthField !== undefined && { lengthField }),
    ...(length !== undefined && { length }),
    ...(switchField !== undefined && { switchField }),
    ...(switchValue !== undefined && { switchValue }),
  };
}

/** The definition of a structure by its name; undefined: the dictionary does not say it in a form that is known here. Pure. */
export function dictionaryDefinition(dictionary: Dictionary, name: string): Definition | undefined {
  const made = new Map<string, Definition>();
  let isKnown = true;
  const structure = (wanted: string): Definition | undefined => {
    const before = made.get(wanted);
    if (before) return before;
    const raw = own(dictionary.structures, wanted);
    const shape = raw && raw.length <= MAX_FIELDS ? shapeOf(raw) : undefined;
    if (!shape) return undefined;
    const definition: Definition = { kind: shape.kind, fields: [] };
    made.set(wanted, definition);
    for (const field of shape.fields) {
      const type = typeOf(field.type);
      if (type) definition.fields.push(fieldIn(field, type, shape.kind));
      else isKnown = false;
    }
    return definition;
  };
  const typeOf = (text: string): FieldType | undefined => {
    const [, kind, type = ""] = /^(opc|ua|tns):([\s\S]*)$/.exec(text) ?? [];
    if (kind === "opc") return builtIn(OPC_NAMES[type] ?? type);
    if (kind === "ua") return standardByName(type) ?? builtIn(type);
    // On the wire of OPC UA every enumeration is an Int32.
    if (kind === "tns" && own(dictionary.enumerations, type) === 32) return { builtIn: INT32 };
    const found = kind === "tns" ? structure(type) : undefined;
    return found && { structure: found };
  };
  const definition = structure(name);
  return isKnown ? definition : undefined;
}

const own = <T>(record: { readonly [name: string]: T }, name: string): T | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined;

const OPC_NAMES: Readonly<Record<string, string>> = { CharArray: "String", String: "String" };

function builtIn(name: string): FieldType | undefined {
  const number = BUILT_IN_NAMES.indexOf(name);
  return number > 0 ? { builtIn: number } : undefined;
}

const fieldIn = ({ name, lengthField, switchField }: DictionaryField, type: FieldType, kind: Definition["kind"]): Field => ({
  name,
  type,
  valueRank: lengthField === undefined ? -1 : 1,
  isOptional: kind === "optional" && switchField !== undefined,
});

/** Without what only says how long an array is, which field of a union is there, or whether an optional one is. */
function shapeOf(
  raw: readonly DictionaryField[],
): { readonly kind: Definition["kind"]; readonly fields: readonly DictionaryField[] } | undefined {
  const lengths = new Set(raw.map(({ lengthField }) => lengthField));
  const fields = raw.filter(({ name, type }) => !lengths.has(name) && type !== "opc:Bit");
  const bits = raw.filter(({ type }) => type === "opc:Bit");
  // An array whose length stands nowhere on the wire has no place in a definition.
  if (fields.some(({ length }) => length !== undefined)) return undefined;
  const switched = fields.filter(({ switchField }) => switchField !== undefined);
  if (switched.length === 0) return bits.length === 0 ? { kind: "structure", fields } : undefined;
  if (bits.length > 0) {
    const count = bits.reduce((sum, { length = 1 }) => sum + length, 0);
    const isMask = raw.slice(0, bits.length).every(({ type }) => type === "opc:Bit") && count === MASK_BITS;
    const inOrder = switched.every(({ switchField }, i) => bits[i]?.name === switchField && (bits[i]?.length ?? 1) === 1);
    return isMask && inOrder ? { kind: "optional", fields } : undefined;
  }
  const [selector, ...choices] = fields;
  const isUnion =
    selector?.type === "opc:UInt32" &&
    choices.every(({ switchField, switchValue }, i) => switchField === selector.name && switchValue === i + 1);
  return isUnion ? { kind: "union", fields: choices } : undefined;
}
