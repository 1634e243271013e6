import { listenProblem } from "../../lib/port-look.ts";
import type { Context } from "../../model/context.ts";
import { errorCode, toReasonError } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";
import { type Warning, warning } from "../../model/warning.ts";

const EVERYWHERE = "0.0.0.0";
const HERE = "127.0.0.1";

/** `host:port`, an IPv6 address in brackets. */
export const listenText = (host: string, port: number): string => `${host.includes(":") ? `[${host}]` : host}:${port}`;

export interface ListenPlace {
  readonly host: string;
  /** What an operator should know of it. */
  readonly notes: readonly Warning[];
}

/**
 * The place where to listen: the address that the settings name, else all of this machine's, else loopback where policy.yaml opens no more.
 * Throws ReasonError(UNKNOWN, forbidden_by_policy). Pure.
 */
export function listenPlace(configured: string | undefined, port: number, { listenRefusal }: Pick<Context, "listenRefusal">): ListenPlace {
  const refusal = (host: string): string | undefined => listenRefusal?.(listenText(host, port));
  if (configured !== undefined) {
    const why = refusal(configured);
    if (why === undefined) return { host: configured, notes: [] };
    throw new ReasonError("UNKNOWN", `listen: ${why}`, { condition: "forbidden_by_policy" });
  }
  if (refusal(EVERYWHERE) === undefined) return { host: EVERYWHERE, notes: [] };
  const why = refusal(HERE);
  if (why !== undefined) throw new ReasonError("UNKNOWN", `listen: ${why}`, { condition: "forbidden_by_policy" });
  return {
    host: HERE,
    notes: [
      warning(
        "listens_here_alone",
        `only programs on this machine reach the server: it listens on ${HERE}. To let others in, add "${EVERYWHERE}" to listen in policy.yaml`,
      ),
    ],
  };
}

/** True: the port can be had, before the server is built for it. Throws ReasonError in words. */
export async function probeListening(host: string, port: number): Promise<void> {
  const problem = await listenProblem(host, port);
  if (!problem) return;
  const known = toReasonError(problem);
  throw new ReasonError("UNKNOWN", WORDS[errorCode(problem)]?.(host, port) ?? `cannot listen on ${host}:${port}: ${known.message}`, {
    cause: problem,
    condition: known.condition ?? "collector_host_trouble",
  });
}

const WORDS: Readonly<Record<string, (host: string, port: number) => string>> = {
  EADDRINUSE: (host, port) =>
    `port ${port} of ${host} is in use by another program, or by another data sink: change the port of one of them`,
  EADDRNOTAVAIL: (host) => `listen: ${host} is not an address of this machine`,
  EACCES: (_host, port) => `port ${port} may not be listened on by the collector's user: choose one above 1023`,
};
