import { atOnce, type Steps } from "../../src/base/timer.ts";
import type { Limits, Point } from "../driver.ts";
import { inOrderSteps } from "../lib/in-order.ts";
import type { PluginAddress, PluginRequest } from "./session.ts";

/** In the order of the variables; what is to be apart begins a request. Pure. */
export const plan = (points: readonly Point<PluginAddress>[], limits: Limits, apart?: ReadonlySet<Point>): PluginRequest[] =>
  atOnce(planSteps(points, limits, apart));

/** plan in steps. */
export const planSteps = (
  points: readonly Point<PluginAddress>[],
  { maxPoints }: Limits,
  apart?: ReadonlySet<Point>,
): Steps<PluginRequest[]> => inOrderSteps(points, maxPoints, apart);
