import type { ReadValueId } from "node-opcua-client";
import { atOnce, type Steps } from "../../src/base/timer.ts";
import type { Limits, Point, Request } from "../driver.ts";
import { inOrderSteps } from "../lib/in-order.ts";
import type { OpcuaAddress, ResolvedAddress } from "./address.ts";
import type { PlainValues } from "./plain-values.ts";

export type OpcuaRead = Request<OpcuaAddress>;

/** The nodes of a request, each once, and the place among them of each of its points. */
export interface Nodes {
  readonly nodes: readonly ReadValueId[];
  readonly places: readonly number[];
  /** How the values are, where each point is the whole value of a node; absent: some are parts, or wanted as they are encoded. */
  readonly plain?: PlainValues;
  /** True: some are wanted as they are encoded. */
  readonly isEncoded: boolean;
}

/** In the order of the layout, `maxPoints` at a time: a Read takes any nodes together. Pure. */
export const plan = (points: readonly Point<OpcuaAddress>[], limits: Limits, apart?: ReadonlySet<Point>): OpcuaRead[] =>
  atOnce(planSteps(points, limits, apart));

/** plan in steps. Variables that are parts of one node's value are asked for together, where a request has room for them. */
export function* planSteps(points: readonly Point<OpcuaAddress>[], { maxPoints }: Limits, apart?: ReadonlySet<Point>): Steps<OpcuaRead[]> {
  const groups = yield* groupsOf(points);
  if (!groups) return yield* inOrderSteps(points, maxPoints, apart);
  const requests: OpcuaRead[] = [];
  let together: Point<OpcuaAddress>[] = [];
  const end = (): void => {
    if (together.length > 0) requests.push({ points: together });
    together = [];
  };
  for (const group of groups) {
    if (together.length > 0 && together.length + group.length > maxPoints) end();
    for (const point of group) {
      if (together.length >= maxPoints || apart?.has(point)) end();
      together.push(point);
    }
    yield;
  }
  end();
  return requests;
}

/** Points of one node together, each group where its first one is; undefined: all points are whole values. */
function* groupsOf(points: readonly Point<OpcuaAddress>[]): Steps<readonly (readonly Point<OpcuaAddress>[])[] | undefined> {
  if (!points.some(({ address }) => address.select)) return undefined;
  const groups = new Map<string, Point<OpcuaAddress>[]>();
  for (const [i, point] of points.toSorted((a, b) => a.index - b.index).entries()) {
    if (i > 0 && i % AT_ONCE === 0) yield;
    const { address } = point;
    const key = address.kind === "resolved" ? nodeKeyOf(address) : `${point.index} alone`;
    const group = groups.get(key);
    if (group) group.push(point);
    else groups.set(key, [point]);
  }
  return [...groups.values()];
}

const AT_ONCE = 1000;

/** Equal for addresses of one node. */
export const nodeKeyOf = ({ namespace, id: { type, value } }: ResolvedAddress): string => `${namespace} ${type} ${value}`;
