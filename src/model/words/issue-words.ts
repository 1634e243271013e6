import * as z from "zod";

/** Words for the types that values of JSON, YAML and command lines have. */
const TYPES: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  bigint: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
  map: "an object",
  null: "nothing (null)",
  undefined: "nothing",
  date: "a date",
  nan: "NaN",
};
const FORMATS: Readonly<Record<string, string>> = {
  uuid: "a UUID such as 0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11",
  url: "a URL",
  datetime: "a date and time such as 2026-11-20T09:00:00Z",
  date: "a date such as 2026-11-20",
  ipv4: "an IPv4 address",
  ipv6: "an IPv6 address",
  cidrv4: "an IPv4 network such as 10.0.0.0/8",
  cidrv6: "an IPv6 network such as fd00::/8",
  starts_with: "another beginning",
  regex: "another form",
};
const MAX_CHOICES = 30;

/**
 * What is expected where a value does not fit its schema, as one clause that names nothing of the value but its type; undefined: the library
 * has words for it. A schema's own words come first. Pure.
 */
export function issueSentence(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? REQUIRED : `expected ${typeWords(issue.expected)}, not ${givenWords(issue.input)}`;
    case "invalid_value":
      return issue.input === undefined ? REQUIRED : `expected ${choiceWords(issue.values)}`;
    case "too_big":
      return `expected ${sizeWords(issue.origin, issue.inclusive === false ? "less than" : "at most", issue.maximum)}`;
    case "too_small":
      return `expected ${sizeWords(issue.origin, issue.inclusive === false ? "more than" : "at least", issue.minimum)}`;
    case "invalid_format":
      return `expected ${FORMATS[issue.format] ?? `the format ${issue.format}`}`;
    case "not_multiple_of":
      return `expected a multiple of ${issue.divisor}`;
    case "unrecognized_keys":
      return `not known here: ${issue.keys.slice(0, MAX_CHOICES).join(", ")}`;
    case "invalid_union":
      if (issue.input === undefined) return REQUIRED;
      return "options" in issue && Array.isArray(issue.options)
        ? `expected ${choiceWords(issue.options)}`
        : "expected one of the known forms";
    case "invalid_key":
      return "a key in it is not valid";
    case "invalid_element":
      return "an entry in it is not valid";
    default:
      return undefined;
  }
}

/** The whole of the words where nothing is given. */
export const REQUIRED = "is required";

const typeWords = (expected: string): string => TYPES[expected] ?? expected;

function givenWords(value: unknown): string {
  if (value === null) return "nothing (null)";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "number" && !Number.isFinite(value)) return "an infinite number or none";
  return typeof value === "number" && !Number.isInteger(value) ? "a broken number" : typeWords(typeof value);
}

function choiceWords(values: readonly unknown[]): string {
  const words = values.slice(0, MAX_CHOICES).map((value) => (value === null ? "null" : String(value)));
  const [last, ...before] = words.toReversed();
  if (last === undefined) return "another value";
  return before.length === 0 ? last : `${before.toReversed().join(", ")} or ${last}`;
}

function sizeWords(origin: string, relation: string, bound: unknown): string {
  const one = Number(bound) === 1;
  if (origin === "string") return `${relation} ${bound} character${one ? "" : "s"}`;
  if (origin === "array" || origin === "set") return `${relation} ${bound} entr${one ? "y" : "ies"}`;
  return `${relation} ${bound}`;
}

z.config({ customError: issueSentence });
