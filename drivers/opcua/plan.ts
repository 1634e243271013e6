import type { Limits, Point, Request } from "../driver.ts";
import type { OpcuaAddress } from "./address.ts";

export type OpcuaRead = Request<OpcuaAddress>;

/** In the order of the layout, `maxPoints` at a time: a Read takes any nodes together. Pure. */
export function plan(points: readonly Point<OpcuaAddress>[], limits: Limits, apart?: ReadonlySet<Point>): OpcuaRead[] {
  const ordered = [...points].sort((a, b) => a.index - b.index);
  const size = Math.max(1, limits.maxPoints);
  const requests: OpcuaRead[] = [];
  let begin = 0;
  for (let at = 1; at <= ordered.length; at++) {
    const next = ordered[at];
    if (next && at - begin < size && !apart?.has(next)) continue;
    requests.push({ points: ordered.slice(begin, at) });
    begin = at;
  }
  return requests;
}
