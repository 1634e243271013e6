import type { Layout } from "../model/layout.ts";
import { ABSENT, ALL_GOOD, BAD, CHANGES, DOUBTS, GOOD, KNOWN_FLAGS, planOf, SOURCE_TIMES, VERSION, WIDTH } from "./codec-format.ts";
import { F32, F64, I16, I32, I64, type Kind, U8, widthOf } from "./pack-column.ts";

/** Bytes of a payload up to its span, which every readout has. */
export const TIMED_BYTES = 18;
export const TIME_AT = 2;
export const SPAN_AT = 10;

const KIND_OF: Readonly<Record<keyof typeof WIDTH, Kind>> = {
  bool: U8,
  int8: U8,
  uint8: U8,
  int16: I16,
  uint16: I16,
  int32: I32,
  uint32: I32,
  int64: I64,
  uint64: I64,
  float32: F32,
  float64: F64,
  // These have no width: they end what is fixed.
  auto: U8,
  string: U8,
};

/** Rows of one layout have in common: the bytes behind the span, and the values of a fixed width behind these. */
export interface Shape {
  /** Number of variables and states: the same in all rows of the shape. */
  readonly prefix: Uint8Array;
  /** One for each field behind the prefix. */
  readonly kinds: readonly Kind[];
  /** Bytes of a payload up to where the fields end; what is behind is of any length. */
  readonly fixedBytes: number;
  /** Nothing is behind the fields in any row of this shape. */
  readonly isWhole: boolean;
}

/** The payload is one that this code wrote, as far as its header says. */
export const isTimed = (payload: Uint8Array): boolean =>
  payload.length >= TIMED_BYTES && payload[0] === VERSION && ((payload[1] ?? 0) & ~KNOWN_FLAGS) === 0;

/** A layout, as far as it says how the payloads of its rows are made: a byte for each variable. */
export interface Fields {
  readonly stateBytes: number;
  readonly boolBytes: number;
  /** By variable: its kind, BIT or OF_ANY_LENGTH. */
  readonly kinds: Uint8Array;
}

/** A bit among those in front of the values. */
const BIT = 0;
/** A text or an array: no field is behind it. */
const OF_ANY_LENGTH = 0xff;

export function fieldsOf(layout: Layout): Fields {
  const { columns, stateBytes, boolBytes } = planOf(layout);
  const kinds = Uint8Array.from(columns, ({ bit, isArray, scalar }) => {
    if (bit >= 0) return BIT;
    return isArray || WIDTH[scalar] === 0 ? OF_ANY_LENGTH : KIND_OF[scalar];
  });
  return { stateBytes, boolBytes, kinds };
}

/** The shape of a payload along its layout; undefined: it does not follow it. Pure. */
export function shapeOf({ stateBytes, boolBytes, kinds: all }: Fields, payload: Uint8Array): Shape | undefined {
  const flags = payload[1] ?? 0;
  // Each is about variables of its own.
  if (flags & CHANGES) return undefined;
  const statesAt = TIMED_BYTES + varintBytes(all.length);
  const prefixEnd = flags & ALL_GOOD ? statesAt : statesAt + stateBytes;
  const kinds: Kind[] = Array.from({ length: boolBytes }, () => U8);
  let isWhole = (flags & (SOURCE_TIMES | DOUBTS)) === 0;
  for (const [i, kind] of all.entries()) {
    const state = flags & ALL_GOOD ? GOOD : ((payload[statesAt + (i >> 2)] ?? 0) >> ((i & 3) * 2)) & 3;
    if (state === BAD) isWhole = false;
    if (state === BAD || state === ABSENT || kind === BIT) continue;
    if (kind === OF_ANY_LENGTH) {
      isWhole = false;
      break;
    }
    kinds.push(kind as Kind);
  }
  const fixedBytes = kinds.reduce<number>((sum, kind) => sum + widthOf(kind), prefixEnd);
  if (fixedBytes > payload.length || (isWhole && fixedBytes !== payload.length)) return undefined;
  return { prefix: payload.slice(TIMED_BYTES, prefixEnd), kinds, fixedBytes, isWhole };
}

/** True: the payload, of the same layout and flags, has the shape. */
export function hasShape({ prefix, fixedBytes, isWhole }: Shape, payload: Uint8Array): boolean {
  if (isWhole ? payload.length !== fixedBytes : payload.length < fixedBytes) return false;
  for (let i = 0; i < prefix.length; i++) if (payload[TIMED_BYTES + i] !== prefix[i]) return false;
  return true;
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes++;
  return bytes;
}
