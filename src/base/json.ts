/**
 * JSON on one line in which a bigint is a number with all its digits, and a negative zero keeps its sign. Values that JSON lacks (undefined,
 * NaN, functions) are as in JSON.stringify. `replace` may put another value in the place of one, by the name of its field, or of the list that it is in. Pure.
 */
export function toJson(value: unknown, replace: Replace = asItIs): string {
  return write(value, replace, "") ?? "null";
}

type Replace = (value: unknown, field: string) => unknown;
const asItIs: Replace = (value) => value;

function write(given: unknown, replace: Replace, at: string): string | undefined {
  const value = replace(given, at);
  if (typeof value === "bigint") return value.toString();
  if (Object.is(value, -0)) return "-0";
  if (Array.isArray(value)) return `[${value.map((item) => write(item, replace, at) ?? "null").join(",")}]`;
  if (typeof value !== "object" || value === null || ("toJSON" in value && typeof value.toJSON === "function"))
    return JSON.stringify(value);
  const fields = Object.entries(value).flatMap(([name, field]) => {
    const text = write(field, replace, name);
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
  });
  return `{${fields.join(",")}}`;
}
