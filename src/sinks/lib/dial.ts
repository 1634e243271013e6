import type { Socket } from "node:net";
import { permittedResolve } from "../../lib/resolver.ts";
import { openSocket, requirePort } from "../../lib/tcp-opening.ts";
import type { Context } from "../../model/context.ts";
import { toReasonError } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";

/** First keep-alive probe after this long without traffic; what is published and not acknowledged has a deadline of its own. */
const KEEP_ALIVE_MS = 30_000;

export interface Dial {
  readonly host: string;
  readonly port: number;
  /** Name look-up; running out of it is LOOKUP_ERROR. */
  readonly nameMs: number;
  /** TCP connect; below 3.1 s a failed ARP shows as TIMEOUT. */
  readonly connectMs: number;
}

/**
 * Opens TCP for a sink, by the policy and the memory for names of its context: addresses that the policy forbids are not connected to, and a
 * name server that is away keeps no sink from a server that it was connected to before. Throws ReasonError; leaves no socket behind then. The
 * caller listens for errors from then on.
 */
export async function dial({ host, port, nameMs, connectMs }: Dial, { signal, permit, names }: Context): Promise<Socket> {
  requirePort(port);
  const found = permittedResolve(names, permit, port)(host, signal);
  const addresses = await withDeadline(found, nameMs, signal, () => {
    return new ReasonError("LOOKUP_ERROR", `no answer within ${nameMs} ms to the look-up of ${host}`);
  });
  try {
    return await openSocket(
      { host, port, addresses, connectMs, keepAliveMs: KEEP_ALIVE_MS },
      { signal, onAbort: stopped },
      ({ socket, address }) => {
        names?.connected({ host, port }, address);
        // An error that comes before the caller listens is told by the end of the socket.
        socket.on("error", () => {});
        return socket;
      },
    );
  } catch (error) {
    names?.suspect({ host, port });
    throw error;
  }
}

/** Settles with `work`, or throws what `late` makes after `ms`, or CONNECTION_CLOSED on abort. `work` is left to itself then. */
export async function withDeadline<T>(work: Promise<T>, ms: number, signal: AbortSignal, late: () => ReasonError): Promise<T> {
  if (signal.aborted) {
    work.catch(() => {});
    throw stopped();
  }
  let give: () => void = () => {};
  let timer: NodeJS.Timeout | undefined;
  const end = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(late()), ms);
    give = () => fail(stopped());
    signal.addEventListener("abort", give, { once: true });
  });
  try {
    return await Promise.race([work, end]);
  } catch (error) {
    throw toReasonError(error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", give);
  }
}

const stopped = (): ReasonError => new ReasonError("CONNECTION_CLOSED", "stopped by the collector");
