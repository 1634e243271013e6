import type { Layout } from "../model/layout.ts";
import type { DataType, Reading, Scalar } from "../model/value.ts";

/**
 * The layout with the types that came with these readings, where it has `auto`; the same object while there is nothing new. A settled type
 * stays: a value that does not fit it later is that variable's fault. Pure.
 */
export function settleTypes(layout: Layout, readings: readonly (Reading | undefined)[]): Layout {
  let settled: Layout["variables"][number][] | undefined;
  layout.variables.forEach((variable, i) => {
    const reading = readings[i];
    if (variable.type.scalar !== "auto" || reading === undefined || reading.quality === "bad") return;
    settled ??= [...layout.variables];
    settled[i] = { ...variable, type: reading.type ?? typeOfValue(reading.value) };
  });
  return settled ? { ...layout, variables: settled } : layout;
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
