import type { Limits, Point, Request } from "../driver.ts";
import type { OpcuaAddress } from "./address.ts";

export type OpcuaRead = Request<OpcuaAddress>;

/** In the order of the layout, `maxPoints` at a time: a Read takes any nodes together. Pure. */
export function plan(points: readonly Point<OpcuaAddress>[], limits: Limits): OpcuaRead[] {
  const ordered = [...points].sort((a, b) => a.index - b.index);
  const size = Math.max(1, limits.maxPoints);
  const requests: OpcuaRead[] = [];
  for (let at = 0; at < ordered.length; at += size) requests.push({ points: ordered.slice(at, at + size) });
  return requests;
}
