import { FaultError } from "../../src/model/fault.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { Namespace } from "./address.ts";

/** OPC UA's own, and the server's (OPC 10000-3, 8.2.2): these two never move. */
const FIXED = 2;
const UA = "http://opcfoundation.org/UA/";

/** The place where a namespace of an address is in the server's list of today. */
export interface Namespaces {
  /** Today's index; undefined: the server does not have it, or does not tell, which `missing` says. */
  indexOf(namespace: Namespace): number | undefined;
  missing(namespace: Namespace): FaultError;
  /** What to tell the people who wrote ns= addresses; undefined: the indexes are what they were. */
  readonly warning: Warning | undefined;
}

/**
 * `first` is the list that the server had when the collector saw it first, which ns= addresses are held to mean; `now` is today's, undefined: the
 * server does not tell. Pure.
 */
export function namespacesOf(first: readonly (string | null)[], now: readonly (string | null)[] | undefined): Namespaces {
  return now ? told(first, now) : untold(first);
}

/** An index is what it was only where nothing says which namespace it had. */
function untold(first: readonly (string | null)[]): Namespaces {
  return {
    indexOf(namespace) {
      if (typeof namespace !== "number") return namespace.uri === UA ? 0 : undefined;
      return namespace < FIXED || (first[namespace] ?? null) === null ? namespace : undefined;
    },
    missing: (namespace) =>
      new FaultError(
        "no_answer",
        `the server does not tell its namespaces: where ${JSON.stringify(uriOf(first, namespace))} is now is not known`,
      ),
    warning: undefined,
  };
}

const uriOf = (first: readonly (string | null)[], namespace: Namespace): string | null | undefined =>
  typeof namespace === "number" ? first[namespace] : namespace.uri;

function told(first: readonly (string | null)[], now: readonly (string | null)[]): Namespaces {
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
      const which = typeof namespace === "number" ? `, which was ns=${namespace}` : "";
      return new FaultError("not_found", `the server has no namespace ${JSON.stringify(uriOf(first, namespace))}${which}`);
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
