import { type Warning, warning } from "../../src/model/warning.ts";
import type { Namespace } from "./address.ts";

/** OPC UA's own, and the server's (OPC 10000-3, 8.2.2): these two never move. */
const FIXED = 2;

/** The place where a namespace of an address is in the server's list of today. */
export interface Namespaces {
  /** Today's index; undefined: the server does not have it, in words by `missing`. */
  indexOf(namespace: Namespace): number | undefined;
  missing(namespace: Namespace): string;
  /** What to tell the people who wrote ns= addresses; undefined: the indexes are what they were. */
  readonly warning: Warning | undefined;
}

/**
 * `first` is the list that the server had when the collector saw it first, which ns= addresses are held to mean; `now` is today's. Pure.
 */
export function namespacesOf(first: readonly (string | null)[], now: readonly (string | null)[]): Namespaces {
  const moved = first.flatMap((uri, index) => {
    const today = uri === null || index < FIXED ? index : now.indexOf(uri);
    return today === index ? [] : [`ns=${index} (${uri}) is ${today < 0 ? "gone" : `ns=${today} now`}`];
  });
  return {
    indexOf(namespace) {
      if (typeof namespace !== "number") {
        const index = now.indexOf(namespace.uri);
        return index < 0 ? undefined : index;
      }
      const uri = first[namespace];
      if (namespace < FIXED || uri === undefined || uri === null) return namespace;
      const index = now.indexOf(uri);
      return index < 0 ? undefined : index;
    },
    missing(namespace) {
      const uri = typeof namespace === "number" ? first[namespace] : namespace.uri;
      return `the server has no namespace ${JSON.stringify(uri)}${typeof namespace === "number" ? `, which was ns=${namespace}` : ""}`;
    },
    warning:
      moved.length === 0
        ? undefined
        : warning(
            "namespaces_renumbered",
            `the server has renumbered its namespaces: ${moved.slice(0, 10).join("; ")}; addresses with ns= are read where their namespace is now, write them with nsu= to be sure`,
          ),
  };
}
