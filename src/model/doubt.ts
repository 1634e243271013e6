import type { Fault } from "./fault.ts";
import type { Reading, Value } from "./value.ts";

/** Why a value of several parts is uncertain: what is wrong with some of them. The others hold. */
export interface Doubt {
  readonly fault: Fault;
  /** Which parts, and what is wrong with them. */
  readonly detail: string;
}

const MAX_NAMED = 5;

/**
 * The rule for numbers that are none (NaN, infinities), in arrays, matrices and structures: such an element has no value, the reading is
 * uncertain, and its doubt names the element. A scalar is a fault instead. `dimensions`: of a matrix. The same reading where all is well. Pure.
 */
export function doubted(reading: Reading, dimensions: readonly number[] | undefined): Reading {
  if (reading.quality === "bad" || reading.doubt || typeof reading.value !== "object") return reading;
  const odd = oddElements(reading.value);
  if (odd.length === 0) return reading;
  const { value } = reading;
  const words = odd.slice(0, MAX_NAMED).map((place) => `element ${indexText(place, dimensions)} is ${String(value[place])}`);
  return { ...reading, quality: "uncertain", doubt: doubtOf(words, odd.length) };
}

/** `words` of the first parts, of `count`. Pure. */
export function doubtOf(words: readonly string[], count = words.length): Doubt {
  const named = words.slice(0, MAX_NAMED).join(", ");
  return { fault: "not_a_number", detail: count > MAX_NAMED ? `${named}, and ${count - MAX_NAMED} more` : named };
}

/** Places of the elements that are not numbers though their type is one. */
function oddElements(value: Exclude<Value, string | number | bigint | boolean>): readonly number[] {
  const odd: number[] = [];
  for (let i = 0; i < value.length; i++) {
    const element = value[i];
    if (typeof element !== "number") return odd;
    if (!Number.isFinite(element)) odd.push(i);
  }
  return odd;
}

/** `5`, and in a matrix of 2 x 3 `[1,2]`: elements lie row by row. */
function indexText(place: number, dimensions: readonly number[] | undefined): string {
  if (!dimensions || dimensions.length < 2) return String(place);
  const index: number[] = [];
  let rest = place;
  for (const size of dimensions.toReversed()) {
    index.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return `[${index.join(",")}]`;
}
