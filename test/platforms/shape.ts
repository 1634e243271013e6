import type { Json, Row } from "../contract/api-v2.ts";

type Place = readonly (string | number)[];

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const isObject = (value: Json | undefined): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The place where a value is not as a table of API-V2 describes it: a field that is missing, of another type, or not in the table. Pure. */
export function problemsOf(value: Json, shape: readonly Row[], at: Place): readonly Place[] {
  if (!isObject(value)) return [at];
  const unknown = Object.keys(value).filter((name) => !shape.some(({ field }) => field === name));
  return [
    ...unknown.map((name) => [...at, name]),
    ...shape.flatMap((row) => {
      const inner = value[row.field];
      if (inner === undefined) return row.required ? [[...at, row.field]] : [];
      return fieldProblems(inner, row, [...at, row.field]);
    }),
  ];
}

function fieldProblems(value: Json, row: Row, at: Place): readonly Place[] {
  if (value === null) return row.nullable ? [] : [at];
  switch (row.type) {
    case "integer":
      return Number.isInteger(value) && Number(value) >= (row.min ?? -Infinity) && Number(value) <= (row.max ?? Infinity) ? [] : [at];
    case "string":
    case "date-time": {
      if (typeof value !== "string") return [at];
      const length = [...value].length;
      const fits = row.type === "string" || !Number.isNaN(Date.parse(value));
      return fits && length >= (row.minLength ?? 0) && length <= (row.maxLength ?? Infinity) ? [] : [at];
    }
    case "uuid":
      return typeof value === "string" && UUID.test(value) ? [] : [at];
    case "boolean":
      return typeof value === "boolean" ? [] : [at];
    case "record":
      return isObject(value) ? [] : [at];
    case "enum":
      return row.values.some((one) => one === value) ? [] : [at];
    case "list":
      return Array.isArray(value) && value.every((one) => row.values.some((known) => known === one)) ? [] : [at];
    case "object":
      return problemsOf(value, row.shape, at);
    case "array":
      return Array.isArray(value) ? value.flatMap((one: Json, n) => problemsOf(one, row.shape, [...at, n])) : [at];
    case "union": {
      const tag = isObject(value) ? value[row.discriminator] : undefined;
      const variant = typeof tag === "string" ? row.variants[tag] : undefined;
      if (!isObject(value) || !variant) return [[...at, row.discriminator]];
      const { [row.discriminator]: _, ...rest } = value;
      return problemsOf(rest, variant, at);
    }
  }
}
