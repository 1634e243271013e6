/** What outlives a session, by server: how much it takes at once, its first list of namespaces, sessions that it still holds for us. */
export interface ServerMemory {
  /** Points in one request, learned from answers that were too large; undefined: nothing learned. */
  maxPoints: number | undefined;
  /** The list that ns= addresses are held to mean. */
  firstNamespaces: readonly (string | null)[] | undefined;
  /** Monotonic ms until which the server may hold a session of ours that we could not end. */
  lostUntilMs: number;
  /** Warnings that the log has had, each once: they come again with each session. */
  readonly told: Set<string>;
}

/** Servers that are remembered; the one that was not used for longest goes first. */
const MAX_SERVERS = 1000;

export type Memory = (server: string) => ServerMemory;

export function createMemory(): Memory {
  const servers = new Map<string, ServerMemory>();
  return (server) => {
    const known = servers.get(server) ?? {
      maxPoints: undefined,
      firstNamespaces: undefined,
      lostUntilMs: Number.NEGATIVE_INFINITY,
      told: new Set(),
    };
    servers.delete(server);
    servers.set(server, known);
    for (const oldest of servers.keys()) {
      if (servers.size <= MAX_SERVERS) break;
      servers.delete(oldest);
    }
    return known;
  };
}
