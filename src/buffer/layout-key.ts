import { createHash } from "node:crypto";
import type { Layout } from "../model/layout.ts";
import { formatDataType } from "../model/value.ts";

const keys = new WeakMap<Layout, string>();

/** Content key of a layout: SHA-256 over its fields in a fixed order, the first 32 hex digits. Kept per object: layouts do not change. */
export function layoutKey(layout: Layout): string {
  const known = keys.get(layout);
  if (known !== undefined) return known;
  const content = [
    layout.source.uuid,
    layout.source.name,
    layout.variables.map((v) => [v.uuid, v.name, v.address, formatDataType(v.type), v.unit, v.comment, v.exploration]),
  ];
  const key = createHash("sha256").update(JSON.stringify(content)).digest("hex").slice(0, 32);
  keys.set(layout, key);
  return key;
}
