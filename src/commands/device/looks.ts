import type { AnyDriver } from "../../../drivers/driver.ts";
import { looksLike } from "../../model/looks-like.ts";
import type { Reading, Value } from "../../model/value.ts";
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
      const what = look.type === "REAL" ? "are plausible as REAL" : "are decimal digits, so that BCD and binary cannot be told apart";
      return [
        `${text}: all ${look.readings} values ${what} (${look.value}): compare with the device, and write ${text}:${look.type} if it fits`,
      ];
    });
  }
}
