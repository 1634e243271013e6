import { atOnce, type Steps } from "../../src/base/timer.ts";
import type { Limits, Point, Request } from "../driver.ts";
import { groupTextSteps } from "../lib/group.ts";
import { sortSteps } from "../lib/sort.ts";
import type { ProfileAddress } from "./address.ts";

/** One request of a profile: everything that is in its answer is taken from it. */
export interface ProfileRequest extends Request<ProfileAddress> {
  /** Name in the profile. */
  readonly name: string;
  readonly args: readonly string[];
}

export type ProfilePoint = Point<ProfileAddress>;

const keyOf = ({ address: { request, args } }: ProfilePoint): string => [request, ...args].join("/");

/** Points of one request and the same arguments together, in the order of the source's variables. Pure. */
export const plan = (points: readonly ProfilePoint[], limits: Limits): ProfileRequest[] => atOnce(planSteps(points, limits));

/** plan in steps. */
export function* planSteps(points: readonly ProfilePoint[], { maxPoints }: Limits): Steps<ProfileRequest[]> {
  const inOrder = yield* sortSteps(points, (one, other) => one.index - other.index);
  const requests: ProfileRequest[] = [];
  for (const together of yield* groupTextSteps(inOrder, keyOf))
    for (let from = 0; from < together.length; from += maxPoints) {
      const part = together.slice(from, from + maxPoints);
      const [first] = part;
      if (first) requests.push({ points: part, name: first.address.request, args: first.address.args });
      yield;
    }
  return requests;
}

/** In words. */
export const describeRequest = ({ name, args }: Pick<ProfileRequest, "name" | "args">): string => `request ${[name, ...args].join("/")}`;
