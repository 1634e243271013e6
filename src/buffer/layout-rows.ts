import { deflateRawSync, inflateRawSync } from "node:zlib";
import type Database from "better-sqlite3";
import type { Layout } from "../model/layout.ts";
import { layoutKey } from "./layout-key.ts";

/** A layout with its content key, by which it is known to be whole. */
export interface KeyedLayout {
  readonly key: string;
  readonly layout: Layout;
}

/** Layouts are small beside the values that need them, and are packed in a few ms. */
const LEVEL = 1;
/** A copy that would be larger is none. */
const MAX_LAYOUT_BYTES = 256 * 2 ** 20;

/** Windows of zlib, as powers of two. */
const WINDOW_BITS = { least: 10, most: 15 } as const;
/** How much larger a window is than what its tables are made for (zlib: memLevel 8 with 15 bits). */
const TABLES_BELOW_BITS = 7;
const PACKED_AT_ONCE = { leastBytes: 256, mostBytes: 16 * 1024 } as const;

/** With memory of the body's own size: otherwise zlib takes 256 KiB for each layout, and its result keeps 64 KiB until it is collected. */
export function packedLayout(body: string): Uint8Array {
  const windowBits = Math.max(WINDOW_BITS.least, Math.min(WINDOW_BITS.most, 32 - Math.clz32(body.length)));
  const chunkSize = Math.max(PACKED_AT_ONCE.leastBytes, Math.min(PACKED_AT_ONCE.mostBytes, body.length >> 1));
  return deflateRawSync(body, { level: LEVEL, windowBits, memLevel: windowBits - TABLES_BELOW_BITS, chunkSize });
}

/** Reads layouts through any connection: where one is damaged, its copy. Undefined: the file has neither. Throws if the file cannot be read. */
export function layoutRows(db: Database.Database): (id: number) => KeyedLayout | undefined {
  const row = db.prepare<[number], { key: string; body: string }>("SELECT key, body FROM layout WHERE id = ?");
  // Files before version 6 have none.
  const copy = tried(() => db.prepare<[number], { key: string; body: Uint8Array }>("SELECT key, body FROM layout_copy WHERE id = ?"));
  return (id) => {
    let thrown: unknown;
    let found: { readonly key: string; readonly body: string } | undefined;
    try {
      found = row.get(id);
    } catch (error) {
      thrown = error;
    }
    const whole = found && wholeLayout(found.key, found.body);
    if (whole) return whole;
    const kept = tried(() => copy?.get(id));
    const copied = kept && wholeLayout(kept.key, kept.body);
    if (!copied && thrown !== undefined) throw thrown;
    return copied;
  };
}

/** `body`: as a text, or packed. Undefined: it is not the layout of this key. */
export function wholeLayout(key: string, body: string | Uint8Array): KeyedLayout | undefined {
  return tried(() => {
    const text = typeof body === "string" ? body : inflateRawSync(body, { maxOutputLength: MAX_LAYOUT_BYTES }).toString();
    const layout = JSON.parse(text) as Layout;
    return layoutKey(layout) === key ? { key, layout } : undefined;
  });
}

function tried<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
