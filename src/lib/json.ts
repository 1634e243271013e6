/** JSON on one line in which a bigint is a number with all its digits, and a negative zero keeps its sign. Values that JSON lacks (undefined, NaN, functions) are as in JSON.stringify. */
export function toJson(value: unknown): string {
  return write(value) ?? "null";
}

function write(value: unknown): string | undefined {
  if (typeof value === "bigint") return value.toString();
  if (Object.is(value, -0)) return "-0";
  if (Array.isArray(value)) return `[${value.map((item) => write(item) ?? "null").join(",")}]`;
  if (typeof value !== "object" || value === null || ("toJSON" in value && typeof value.toJSON === "function"))
    return JSON.stringify(value);
  const fields = Object.entries(value).flatMap(([name, field]) => {
    const text = write(field);
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
  });
  return `{${fields.join(",")}}`;
}

/** The number with the fewest digits that is the same float32: 21.1 and not 21.100000381469727. */
export function shortestFloat32(value: number): number {
  if (value === 0) return value;
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  // Nine digits always tell two float32 apart (IEEE 754-2019, 5.12.2); what is none is left as it is.
  const nine = Number(value.toPrecision(9));
  return Math.fround(nine) === value ? nine : value;
}
