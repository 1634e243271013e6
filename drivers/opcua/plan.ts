import { atOnce, type Steps } from "../../src/base/timer.ts";
import type { Limits, Point, Request } from "../driver.ts";
import { inOrderSteps } from "../lib/in-order.ts";
import type { OpcuaAddress } from "./address.ts";

export type OpcuaRead = Request<OpcuaAddress>;

/** In the order of the layout, `maxPoints` at a time: a Read takes any nodes together. Pure. */
export const plan = (points: readonly Point<OpcuaAddress>[], limits: Limits, apart?: ReadonlySet<Point>): OpcuaRead[] =>
  atOnce(planSteps(points, limits, apart));

/** plan in steps. */
export const planSteps = (points: readonly Point<OpcuaAddress>[], { maxPoints }: Limits, apart?: ReadonlySet<Point>): Steps<OpcuaRead[]> =>
  inOrderSteps(points, maxPoints, apart);
