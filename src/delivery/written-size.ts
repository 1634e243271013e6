import type { StoredBatch } from "../buffer/buffer.ts";
import type { Layout } from "../model/layout.ts";
import type { DataType } from "../model/value.ts";

/** What a value takes as text, with what separates it, generously. A text is counted by the bytes that are stored. */
const VALUE_BYTES: Readonly<Record<DataType["scalar"], number>> = {
  auto: 24,
  bool: 6,
  int8: 5,
  uint8: 5,
  int16: 7,
  uint16: 7,
  int32: 12,
  uint32: 12,
  int64: 21,
  uint64: 21,
  float32: 15,
  float64: 24,
  string: 3,
};
/** Of one readout, without its values. */
const READOUT_BYTES = 100;
/** What JSON makes of a byte of text, more or less: most are one. */
const PER_STORED_BYTE = 2;

interface Weight {
  readonly fixed: number;
  readonly perStoredByte: number;
}

const weights = new WeakMap<Layout, Weight>();

function weightOf(layout: Layout): Weight {
  const known = weights.get(layout);
  if (known) return known;
  let fixed = READOUT_BYTES;
  let hasText = false;
  for (const { name, type } of layout.variables) {
    fixed += name.length + 4 + VALUE_BYTES[type.scalar] * (type.count ?? 1);
    hasText ||= type.scalar === "string";
  }
  const weight = { fixed, perStoredByte: hasText ? PER_STORED_BYTE : 0 };
  weights.set(layout, weight);
  return weight;
}

/**
 * About how many bytes a sink makes of a row: what is a bit in the file is a name and a word in a message. Bounds what is put together and is
 * under way at once; undefined layout: as much as is stored.
 */
export function writtenBytesOf({ payload }: StoredBatch, layout: Layout | undefined): number {
  if (!layout) return payload.byteLength;
  const { fixed, perStoredByte } = weightOf(layout);
  return fixed + perStoredByte * payload.byteLength;
}
