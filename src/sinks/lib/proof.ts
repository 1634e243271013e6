import { hash } from "node:crypto";

/** Proof that a copy at a broker's subscribers or a platform is what was acknowledged: hashes of values, and findings. */

/**
 * A fault of a readout in the copy. missing: it is not there; incomplete: some of its values are not; different: another content;
 * double: it is there under identifiers of two readouts, or some of its values are there twice; extra: it was not delivered.
 */
export interface Finding {
  readonly kind: "missing" | "incomplete" | "different" | "double" | "extra";
  readonly source: string;
  /** Names the batch that was acknowledged; identifiers of its messages begin with it. Empty: there was none. */
  readonly id: string;
  /** Time of the readout, or of the minute where the manifest has no list of it (`readouts`: so many). */
  readonly time: string;
  readonly values?: { readonly expected: number; readonly found: number };
  readonly readouts?: number;
}

/** The outcome of a comparison. */
export interface Judgement {
  readonly findings: readonly Finding[];
  /** Readouts that the manifest has in the time that was judged, and that time. */
  readonly readouts: number;
  readonly sources: number;
  readonly from: string | null;
  readonly to: string | null;
  /** In the manifest, and not judged: in no list, or of several contents. */
  readonly unproved: number;
}

/** The first four bytes of the SHA-256 of `["variable","quality",value]`. Pure. */
export const hashOf = (variable: string, quality: string, value: unknown): number =>
  // Hexadecimal digits take a third of the time that bytes do.
  Number.parseInt(hash("sha256", `[${JSON.stringify(variable)},${JSON.stringify(quality)},${canonical(value)}]`).slice(0, 8), 16);

/** The hash of a readout: the sum of those of its values, so that it is the same however messages divide them. Pure. */
export function sumOf(entries: Iterable<number>): number {
  let sum = 0;
  for (const entry of entries) sum = (sum + entry) >>> 0;
  return sum;
}

/** A value as JSON in one form, whatever wrote it: a database may write other blanks, zeros and orders of keys. */
function canonical(value: unknown): string {
  if (value === undefined || value === null) return "null";
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return String(value);
  if (typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`).join(",")}}`;
}

/** Digits of 64-bit integers, which a number would lose. */
const LONG_DIGITS = /\d{16}/;
const INTEGER = /^-?\d{1,20}$/;

/** JSON with all digits of 64-bit integers. Throws SyntaxError. Pure. */
export function parseExact(text: string): unknown {
  if (!LONG_DIGITS.test(text)) return JSON.parse(text);
  const exact = (_: string, value: unknown, { source = "" }: { readonly source?: string } = {}): unknown =>
    typeof value === "number" && !Number.isSafeInteger(value) && INTEGER.test(source) ? BigInt(source) : value;
  return JSON.parse(text, exact);
}

export const hexOf = (sum: number): string => sum.toString(16).padStart(8, "0");
