import type { Limits, Point, Request } from "../driver.ts";
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
export function plan(points: readonly ProfilePoint[], { maxPoints }: Limits): ProfileRequest[] {
  const inOrder = points.toSorted((one, other) => one.index - other.index);
  return [...Map.groupBy(inOrder, keyOf).values()].flatMap((together) => {
    const requests: ProfileRequest[] = [];
    for (let from = 0; from < together.length; from += maxPoints) {
      const part = together.slice(from, from + maxPoints);
      const [first] = part;
      if (first) requests.push({ points: part, name: first.address.request, args: first.address.args });
    }
    return requests;
  });
}

/** In words. */
export const describeRequest = ({ name, args }: Pick<ProfileRequest, "name" | "args">): string => `request ${[name, ...args].join("/")}`;
