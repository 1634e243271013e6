import { atOnce, type Steps } from "../base/timer.ts";
import { fitsType, unfit } from "../model/fits.ts";
import type { Layout } from "../model/layout.ts";
import type { DataType, Reading, Scalar } from "../model/value.ts";

/**
 * The layout with the types that came with these readings, where it has `auto`; the same object while there is nothing new. A settled type
 * stays: a value that does not fit it later is that variable's fault. Pure.
 */
export const settleTypes = (layout: Layout, readings: readonly (Reading | undefined)[]): Layout => atOnce(settleSteps(layout, readings));

/** Variables in one step. */
const AT_ONCE = 500;

/** settleTypes in steps. */
export function* settleSteps(layout: Layout, readings: readonly (Reading | undefined)[]): Steps<Layout> {
  let settled: Layout["variables"][number][] | undefined;
  for (const [i, variable] of layout.variables.entries()) {
    if (i % AT_ONCE === 0) yield;
    const reading = readings[i];
    if (variable.type.scalar !== "auto" || reading === undefined || reading.quality === "bad") continue;
    settled ??= [...layout.variables];
    settled[i] = { ...variable, type: reading.type ?? typeOfValue(reading.value) };
  }
  return settled ? { ...layout, variables: settled } : layout;
}

/**
 * What was read, with each value that does not fit the type that was settled with its variable's first one made bad: said here, status, log
 * and every sink say the same of it. `places`: of the variables whose types were settled. The same array while all fit. Pure.
 */
export const fitSettled = (
  layout: Layout,
  readings: readonly (Reading | undefined)[],
  places: readonly number[],
): readonly (Reading | undefined)[] => atOnce(fitSettledSteps(layout, readings, places));

/** fitSettled in steps. */
export function* fitSettledSteps(
  { variables }: Layout,
  readings: readonly (Reading | undefined)[],
  places: readonly number[],
): Steps<readonly (Reading | undefined)[]> {
  let fitted: (Reading | undefined)[] | undefined;
  for (const [i, place] of places.entries()) {
    if (i > 0 && i % AT_ONCE === 0) yield;
    const type = variables[place]?.type;
    const reading = readings[place];
    if (!type || !reading || reading.quality === "bad" || fitsType(reading.value, type)) continue;
    const { fault, detail } = unfit(type, reading.value);
    fitted ??= [...readings];
    const words = fault === "type_mismatch" ? `${detail}, the type that came with its first value; configure a type for it` : detail;
    fitted[place] = { quality: "bad", fault, detail: words };
  }
  return fitted ?? readings;
}

/** True: a type is not known yet, in steps. */
export function* hasAuto({ variables }: Layout): Steps<boolean> {
  for (const [i, { type }] of variables.entries()) {
    if (type.scalar === "auto") return true;
    if (i > 0 && i % AT_ONCE === 0) yield;
  }
  return false;
}

function typeOfValue(value: Scalar | readonly Scalar[]): DataType {
  if (typeof value !== "object") return { scalar: scalarOf(value) };
  return { scalar: scalarOf(value[0]), count: Math.max(1, value.length) };
}

function scalarOf(value: Scalar | undefined): "bool" | "float64" | "int64" | "string" {
  switch (typeof value) {
    case "boolean":
      return "bool";
    case "number":
      return "float64";
    case "bigint":
      return "int64";
    default:
      return "string";
  }
}
