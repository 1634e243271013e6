export type ModbusArea = "coil" | "discrete" | "holding" | "input";

/** The order of bytes and words, as our addresses have it. */
export type ModbusOrder = "ABCD" | "BADC" | "CDAB" | "DCBA";

export interface ModbusPlace {
  readonly area: ModbusArea;
  /** From 0, as on the wire. */
  readonly start: number;
  /** Absent: that of the data source. */
  readonly unit?: number | undefined;
  /** 0 is the lowest. */
  readonly bit?: number | undefined;
  /** Elements of an array. */
  readonly count?: number | undefined;
  /** Absent: that of the data source. */
  readonly order?: ModbusOrder | undefined;
}

/** Types of a number by the word that programs share, in lower case: how many registers each takes, and its name here. */
const NUMBERS: ReadonlyMap<string, readonly [type: string, registers: number]> = new Map([
  ["int16", ["int16", 1]],
  ["uint16", ["uint16", 1]],
  ["int32", ["int32", 2]],
  ["uint32", ["uint32", 2]],
  ["int64", ["int64", 4]],
  ["uint64", ["uint64", 4]],
  ["float16", ["FLOAT16", 1]],
  ["float32", ["float32", 2]],
  ["float64", ["float64", 4]],
]);

/** The name of a type here and its registers; undefined: it is not a number of whole registers. Pure. */
export const modbusNumber = (word: string): readonly [type: string, registers: number] | undefined => NUMBERS.get(word.toLowerCase());

/** A place in our words: `1/holding:100.3[2]@CDAB`. Undefined: a number in it is not whole or out of range. Pure. */
export function modbusPlace({ area, start, unit, bit, count, order }: ModbusPlace): string | undefined {
  const isWhole = (value: number | undefined, from: number, to: number): boolean =>
    value === undefined || (Number.isInteger(value) && value >= from && value <= to);
  if (!isWhole(start, 0, 65_535) || !isWhole(unit, 0, 255) || !isWhole(bit, 0, 15) || !isWhole(count, 1, 65_535)) return undefined;
  return [
    unit === undefined ? "" : `${unit}/`,
    `${area}:${start}`,
    bit === undefined ? "" : `.${bit}`,
    count === undefined || count === 1 ? "" : `[${count}]`,
    order === undefined ? "" : `@${order}`,
  ].join("");
}

export const NO_PLACE = "its address, unit, bit or length is not a whole number in range";

/** A number from outside; NaN where it is not one, undefined where there is none. Texts of digits are numbers too. Pure. */
export function numberOf(value: unknown): number | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value === "number") return value;
  return typeof value === "string" && /^\s*[+-]?\d{1,15}(\.\d{1,15})?\s*$/.test(value) ? Number(value) : Number.NaN;
}
