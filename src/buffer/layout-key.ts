import { createHash } from "node:crypto";
import { atOnce, type Steps } from "../base/timer.ts";
import type { Layout } from "../model/layout.ts";
import { formatDataType } from "../model/value.ts";

const keys = new WeakMap<Layout, string>();

/** Variables in one step. */
const VARIABLES_AT_ONCE = 200;

/** Content key of a layout: SHA-256 over its fields in a fixed order, the first 32 hex digits. Kept per object: layouts do not change. */
export const layoutKey = (layout: Layout): string => keys.get(layout) ?? atOnce(layoutKeySteps(layout));

/** Computes layoutKey in steps. */
export function* layoutKeySteps(layout: Layout): Steps<string> {
  const known = keys.get(layout);
  if (known !== undefined) return known;
  const { source, variables } = layout;
  const hash = createHash("sha256").update(`[${JSON.stringify(source.uuid)},${JSON.stringify(source.name)},[`);
  for (let from = 0; from < variables.length; from += VARIABLES_AT_ONCE) {
    const fields = variables
      .slice(from, from + VARIABLES_AT_ONCE)
      .map((v) => [v.uuid, v.name, v.address, formatDataType(v.type), v.unit, v.comment, v.exploration]);
    hash.update(`${from > 0 ? "," : ""}${JSON.stringify(fields).slice(1, -1)}`);
    yield;
  }
  const key = hash.update("]]").digest("hex").slice(0, 32);
  keys.set(layout, key);
  return key;
}
