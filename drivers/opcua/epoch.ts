import { createHash, randomUUID } from "node:crypto";

export interface ServerRun {
  /** The list that ns= addresses are held to mean. */
  readonly firstNamespaces: readonly (string | null)[];
  /** Today's. */
  readonly namespaces: readonly (string | null)[];
  /** When the server began to run, as it says; undefined: it does not. */
  readonly startTime: string | undefined;
}

/**
 * What resolved addresses hold for: one run of a server, with its namespaces. A server that does not say when it began may have started
 * again before each session, so that each is a run of its own.
 */
export const epochOf = ({ firstNamespaces, namespaces, startTime = randomUUID() }: ServerRun): string =>
  createHash("sha256")
    .update(JSON.stringify([firstNamespaces, namespaces, startTime]))
    .digest("base64url");
