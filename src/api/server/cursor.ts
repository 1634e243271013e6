import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";

/** Bytes of the signature kept in a token: 128 bits. */
const SIGNATURE_BYTES = 16;
/** Bytes of one part of a position: a 64-bit integer. */
const PART_BYTES = 8;

/** Filters by parameter name; undefined where the parameter is absent. */
export type Filters = Readonly<Record<string, readonly string[] | undefined>>;

/**
 * What a cursor is bound to: the operation and its other parameters, filter values as sets (API-V2, 4.5.5).
 * The order of parameters and of values, repetition, and the case of uuids make no difference.
 */
export function cursorBinding(operation: string, filters: Filters): string {
  const sets = Object.entries(filters)
    .filter((entry): entry is [string, readonly string[]] => entry[1] !== undefined)
    .map(([name, values]) => [name, [...new Set(values.map((value) => value.toLowerCase()))].sort()] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([operation, sets]);
}

/** An opaque token that continues after the row at `position` (integers within ±2^53), signed with `key`, good for this binding only. */
export function encodeCursor(key: KeyObject | Uint8Array, position: readonly number[], binding: string): string {
  const head = Buffer.alloc(PART_BYTES * position.length);
  for (const [i, part] of position.entries()) head.writeBigInt64BE(BigInt(part), i * PART_BYTES);
  return Buffer.concat([head, sign(key, head, binding)]).toString("base64url");
}

/** The position of `parts` integers in the token; undefined when the token was altered, signed with another key, or made for other parameters. */
export function decodeCursor(key: KeyObject | Uint8Array, token: string, binding: string, parts: number): readonly number[] | undefined {
  const bytes = Buffer.from(token, "base64url");
  // Decoding forgives characters that are not of the alphabet: only the one spelling that was given out is taken back.
  if (bytes.length !== parts * PART_BYTES + SIGNATURE_BYTES || bytes.toString("base64url") !== token) return undefined;
  const head = bytes.subarray(0, parts * PART_BYTES);
  if (!timingSafeEqual(bytes.subarray(parts * PART_BYTES), sign(key, head, binding))) return undefined;
  return Array.from({ length: parts }, (_, i) => Number(head.readBigInt64BE(i * PART_BYTES)));
}

function sign(key: KeyObject | Uint8Array, head: Uint8Array, binding: string): Buffer {
  return createHmac("sha256", key).update(head).update(binding).digest().subarray(0, SIGNATURE_BYTES);
}
