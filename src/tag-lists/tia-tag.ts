import type { Cells } from "../configuration/variable-file.ts";
import type { TagEntry } from "./format.ts";

/** A PLC tag of TIA Portal, from any of its files; texts as they have them. */
export interface TiaTag {
  readonly name: string;
  /** `Int`, `Array[0..7] of Int`, a PLC data type. */
  readonly type: string;
  /** `%MD20`, `I 0.0`. */
  readonly address: string;
  readonly comment: string;
  /** False: *Accessible from HMI/OPC UA* is off. */
  readonly isAccessible: boolean;
}

/** Types of data sources that read PLC tags: by their places, or by their names. */
export type TiaType = "s7" | "s7plus";

export const isTiaType = (type: string): type is TiaType => type === "s7" || type === "s7plus";

/** The refusal for another type of data source. */
export const notForTia = (type: string): TagEntry => ({
  refusal: `holds tags of a SIMATIC S7, which data sources of the types s7 and s7plus read, not ${type}`,
});

/** The tag in the words of our columns, or why it cannot be read. Pure. */
export function tiaCells({ name, type, address, comment, isAccessible }: TiaTag, wanted: TiaType): Cells | string {
  const common = { name, ...(comment !== "" && { comment }) };
  if (wanted === "s7plus") {
    if (!isAccessible) return "it is not accessible from HMI/OPC UA: switch that on in the tag table";
    return { ...common, address: `"${name.replaceAll('"', '""')}"` };
  }
  const place = address.replace(/^%/, "");
  if (place === "") return "it has no logical address";
  const word = typeOf(type);
  return word === undefined
    ? `the type ${type} is a structure: add its members with collector variables add`
    : { ...common, address: place, type: word };
}

/** `Int`, `Array[0..7] of Int`; undefined: a PLC data type. */
function typeOf(declared: string): string | undefined {
  const array = /^Array\s*\[\s*(-?\d{1,10})\s*\.\.\s*(-?\d{1,10})\s*\]\s*of\s+(\w+)$/i.exec(declared);
  if (array) return `${array[3]?.toUpperCase()}[${Number(array[2]) - Number(array[1]) + 1}]`;
  return /^\w+$/.test(declared) ? declared.toUpperCase() : undefined;
}
