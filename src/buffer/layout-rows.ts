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

export const packedLayout = (body: string): Uint8Array => deflateRawSync(body, { level: LEVEL });

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
