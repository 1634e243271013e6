import type { AnyDriver } from "../../../drivers/driver.ts";
import { type Look, looksLike, mayLookLike } from "../../model/looks-like.ts";
import type { SourceInsight } from "../../model/source-insight.ts";
import type { Reading, Value } from "../../model/value.ts";
import { parseDataType } from "../../model/value.ts";
import type { TypedPoint } from "./read-input.ts";

/** Values of one address that are kept: what they look like shows in fewer. */
const MAX_VALUES = 100;

/** Values that one command reads, for a hint where they look like those of another type. */
export class Looks {
  readonly #driver: AnyDriver;
  readonly #points: readonly TypedPoint[];
  readonly #values: readonly Value[][];

  constructor(driver: AnyDriver, points: readonly TypedPoint[]) {
    this.#driver = driver;
    this.#points = points;
    this.#values = points.map(() => []);
  }

  add(readings: readonly (Reading | undefined)[]): void {
    for (const [i, values] of this.#values.entries()) {
      const reading = readings[i];
      if (reading && reading.quality !== "bad" && values.length < MAX_VALUES) values.push(reading.value);
    }
  }

  /** Sentences, of the addresses whose type has no word of the field that the driver reads in its own way. */
  hints(): readonly string[] {
    return this.#points.flatMap(({ text, type, word }, i) => {
      const look = word === undefined ? looksLike(type, this.#values[i] ?? []) : undefined;
      if (!look || (look.type !== "REAL" && !this.#driver.parseType?.(look.type))) return [];
      return [`${text}: ${lookWords(look)}: compare with the device, and write ${text}:${look.type} if it fits`];
    });
  }
}

/** Says what all values resemble, with the newest of them read so. Pure. */
export function lookWords({ type, value, readings }: Look): string {
  const what = type === "REAL" ? "are plausible as REAL" : "are decimal digits, so that BCD and binary cannot be told apart";
  return `all ${readings} values ${what} (${value})`;
}

/**
 * The values of one variable of the running service, readout by readout: what they look like. Only of whole numbers that are the plain bits of
 * the device: where a driver reads them in its own way, or the protocol says their type, there is nothing to guess.
 */
export class VariableLook {
  readonly #values: number[] = [];
  #seen: string | undefined;
  #isOver = false;

  /** True: more readouts may show something. */
  add({ readout, explained }: Pick<SourceInsight, "readout" | "explained">): boolean {
    const value = readout?.values[0];
    const type = value && parseDataType(value.type);
    if (!readout || !value || !type || value.quality === "bad" || !isPlain(explained)) this.#isOver = true;
    else if (readout.time !== this.#seen) {
      this.#seen = readout.time;
      const number = Number(value.raw ?? value.value);
      this.#values.push(number);
      this.#isOver = !mayLookLike(type, number);
    }
    return !this.#isOver && this.#values.length < MAX_LOOKED_AT && (!type || looksLike(type, this.#values) === undefined);
  }

  /** Undefined: they look like nothing else. */
  found(typeText: string): Look | undefined {
    const type = parseDataType(typeText);
    return this.#isOver || !type ? undefined : looksLike(type, this.#values);
  }
}

/** Readouts of a variable: somebody waits for them. */
const MAX_LOOKED_AT = 5;

/** The value has the bytes of the wire and no others, in whatever order. */
function isPlain(explained: SourceInsight["explained"]): boolean {
  const wire = explained?.wire;
  if (wire?.state !== "read" || wire.form !== null || wire.value === null) return false;
  const width = wire.bytes.length;
  const bits = width === 8 ? Number(wire.value) >>> 0 : Number(wire.value);
  const sorted = (hex: string): string => (hex.match(/../g) ?? []).toSorted().join("");
  return (width === 4 || width === 8) && sorted(bits.toString(16).padStart(width, "0")) === sorted(wire.bytes);
}
