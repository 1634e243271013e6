import type { AnyDriver, Point } from "../../drivers/driver.ts";
import { shellWord } from "../base/shell-word.ts";
import type { Steps } from "../base/timer.ts";
import type { Layout } from "../model/layout.ts";
import type { Reading } from "../model/value.ts";
import { type Warning, warning } from "../model/warning.ts";
import { READINGS_AT_ONCE } from "./readings.ts";

/** Looked at this seldom: a configuration is wrong for long. */
const LOOK_EVERY_MS = 5000;
/** Looks in a row at which a variable must be odd. */
const IN_A_ROW = 2;
/** No quantity of a machine is as small or as large in any unit; bytes in the wrong order are, mostly. Zero and what is no number is not meant. */
const [SMALLEST, LARGEST] = [1e-30, 1e30];

/** Floats that look like bytes in the wrong order. A source whose driver knows no such orders has none. */
export class OddValues {
  readonly #source: string;
  #nextLookMs = Number.NEGATIVE_INFINITY;
  #first: { readonly name: string; readonly value: number; readonly times: number; readonly others: number } | undefined;

  /** `source`: its name. */
  constructor(source: string) {
    this.#source = shellWord(source, "SOURCE");
  }

  /** One sentence with the command that shows every order; undefined: none is odd. */
  get warning(): Warning | undefined {
    if (!this.#first || this.#first.times < IN_A_ROW) return undefined;
    const { name, value, others } = this.#first;
    const more = others === 0 ? "" : ` (and ${others} more variables)`;
    const text = `${name}: ${value.toPrecision(3)} is not a value of a sensor${more}; the byte order is wrong, mostly: \`collector explain ${this.#source} ${shellWord(name, "VARIABLE")}\` shows it in each order`;
    return warning("values_odd", text);
  }

  /** After a readout, in steps; `nowMs` is monotonic. */
  *watch({ variables }: Layout, readings: readonly (Reading | undefined)[], nowMs: number): Steps<void> {
    if (nowMs < this.#nextLookMs) return;
    this.#nextLookMs = nowMs + LOOK_EVERY_MS;
    let first: { readonly name: string; readonly value: number } | undefined;
    let odd = 0;
    for (const [i, reading] of readings.entries()) {
      if (i > 0 && i % READINGS_AT_ONCE === 0) yield;
      if (!reading || reading.quality === "bad" || typeof reading.value !== "number" || !isOdd(reading.value)) continue;
      first ??= { name: variables[i]?.name ?? String(i), value: reading.value };
      odd++;
    }
    const before = this.#first;
    this.#first = first && { ...first, others: odd - 1, times: before?.name === first.name ? before.times + 1 : 1 };
  }
}

const isOdd = (value: number): boolean => {
  const size = Math.abs(value);
  return size !== 0 && size !== Number.POSITIVE_INFINITY && (size < SMALLEST || size > LARGEST);
};

/** True: the bytes of this float come in one order or another, by the device; a protocol that has one order has no wrong one. Pure. */
export const hasOrders = ({ wireOf }: Pick<AnyDriver, "wireOf">, float: Point): boolean =>
  (wireOf?.(float.address, float.type)?.orders.length ?? 0) > 0;
