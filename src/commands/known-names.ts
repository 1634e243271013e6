import { nearest } from "../base/nearest.ts";

/** Names in a refusal, at most. */
const MAX_NAMED = 20;

/** After `there is no X NAME`: the name that was meant, mostly, and those that there are; empty: there is none. Pure. */
export function knownNames(name: string, names: readonly string[], introduction = "there are: "): string {
  if (names.length === 0) return "";
  const meant = nearest(name, names);
  const list = `; ${introduction}${names.slice(0, MAX_NAMED).join(", ")}${names.length > MAX_NAMED ? ", …" : ""}`;
  return (meant === undefined ? "" : `; did you mean ${meant}?`) + list;
}
