import { connect, type LookupFunction, type Socket } from "node:net";
import { systemAddresses } from "../../lib/system-lookup.ts";
import { toReasonError } from "../../model/failure.ts";
import type { Permit } from "../../model/policy.ts";
import { ReasonError } from "../../model/reason.ts";

export interface Dial {
  readonly host: string;
  readonly port: number;
  /** Name look-up; running out of it is LOOKUP_ERROR. */
  readonly nameMs: number;
  /** TCP connect; below 3.1 s a failed ARP shows as TIMEOUT. */
  readonly connectMs: number;
  /** Addresses that it forbids are not connected to; absent: all are permitted. */
  readonly permit?: Permit | undefined;
}

/** Resolves once TCP is connected. Throws ReasonError; leaves no socket behind then. The caller listens for errors from then on. */
export async function dial({ host, port, nameMs, connectMs, permit }: Dial, signal: AbortSignal): Promise<Socket> {
  if (port < 1 || port > 65_535)
    throw new ReasonError("UNKNOWN", `port: ${port} cannot be connected to; it must be within 1 and 65535`, {
      condition: "configuration_invalid",
    });
  const found = await withDeadline(systemAddresses(host), nameMs, signal, () => {
    return new ReasonError("LOOKUP_ERROR", `no answer within ${nameMs} ms to the look-up of ${host}`);
  });
  const addresses = found.filter(({ address }) => permit?.(address, port) === undefined);
  const [refused] = found;
  if (addresses.length === 0 && refused)
    throw new ReasonError("UNKNOWN", permit?.(refused.address, port) ?? `${host} may not be connected to`, {
      condition: "forbidden_by_policy",
    });
  const known: LookupFunction = (_host, options, done) => {
    const [first] = addresses;
    if (options.all || !first) done(null, [...addresses]);
    else done(null, first.address, first.family);
  };
  const socket = connect({ host, port, lookup: known, noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 });
  try {
    await withDeadline(connected(socket), connectMs, signal, () => {
      return new ReasonError("TIMEOUT", `${host}:${port} did not accept a connection within ${connectMs} ms`);
    });
    return socket;
  } catch (error) {
    socket.on("error", () => {});
    socket.destroy();
    throw toReasonError(error);
  }
}

function connected(socket: Socket): Promise<void> {
  return new Promise((done, fail) => {
    socket.once("connect", () => {
      socket.off("error", fail);
      done();
    });
    socket.once("error", fail);
  });
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
