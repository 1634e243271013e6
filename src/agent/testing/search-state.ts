import type { Point, Request } from "../../../drivers/driver.ts";
import type { LearnedGroups } from "../learned-groups.ts";
import type { Known, Readout, Search, State } from "../search/state.ts";

/** The state as JSON text: points by their index, groups by their number in the plan, requests by their points, good readings without values. */
export function stateText({ plan, device, user, readout }: State): string {
  const points = new Set<unknown>(plan.points);
  const groups = new Map<unknown, number>(plan.groups.map((group, n) => [group, n]));
  const plain = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value ?? null;
    if (points.has(value)) return { $point: (value as Point).index };
    if (groups.has(value)) return { $group: groups.get(value) };
    if (value === plan.groups) return { $groups: true };
    if (value instanceof Map) return { $map: plain([...value]) };
    if (value instanceof Set) return { $set: plain([...value]) };
    if (Array.isArray(value)) return Array.from(value, plain);
    if ("points" in value && !("kind" in value)) return { $request: plain(value.points) };
    if ("quality" in value && value.quality === "good") return { quality: "good" };
    // A search stands in one list, and is referred to by its place there.
    const search = plan.known.searches.indexOf(value as Search);
    return search >= 0 ? { $search: search } : entries(value);
  };
  const entries = (value: object) =>
    Object.fromEntries(Object.entries(value).flatMap(([name, one]) => (one === undefined ? [] : [[name, plain(one)]])));
  const known = { ...entries({ ...plan.known, searches: [] }), searches: plan.known.searches.map(entries) };
  const requests = plan.groups.map((group) => plain(group.requests.map(({ request }) => request)));
  return JSON.stringify({ known, requests, device, user: user.id, readout: entries(readout) });
}

/** The state of such a text. `plan`: of the same points, planned by the same driver and limits, with nothing learned. */
export function stateOf(text: string, plan: LearnedGroups): State {
  const points = new Map(plan.points.map((point) => [point.index, point]));
  const requestOf = (some: readonly Point[]): Request | undefined => {
    const isSame = (other: Request) => other.points.length === some.length && other.points.every((point, i) => point === some[i]);
    const planned = plan.groups.flatMap(({ fresh, requests }) => [fresh, ...requests.map(({ request }) => request)]);
    return planned.find(isSame) ?? plan.requestsFor(some)[0];
  };
  const revive = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(revive);
    const [[tag, one] = ["", undefined]] = Object.entries(value);
    if (tag === "$point") return points.get(one);
    if (tag === "$group") return plan.groups[one];
    if (tag === "$groups") return plan.groups;
    if (tag === "$map") return new Map(revive(one) as [unknown, unknown][]);
    if (tag === "$set") return new Set(revive(one) as unknown[]);
    if (tag === "$request") return requestOf(revive(one) as Point[]);
    if (tag === "$search") return plan.known.searches[one];
    return Object.fromEntries(Object.entries(value).map(([name, other]) => [name, revive(other)]));
  };
  const { known, requests, device, user: id, readout } = JSON.parse(text);
  Object.assign(plan.known, revive(known) as Known);
  plan.groups.forEach((group, n) => {
    group.requests = (revive(requests[n]) as Request[]).map((request) => ({ what: "planned", request, group }));
  });
  const revived = revive(readout) as Readout;
  revived.readings.forEach((reading, index) => {
    revived.readings[index] = reading ?? undefined;
  });
  const user = device.users.find((one: State["user"]) => one.id === id);
  return { plan, device, user, readout: revived };
}
