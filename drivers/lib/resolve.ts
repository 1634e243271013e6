import { systemAddresses } from "../../src/lib/system-lookup.ts";
import type { Address } from "../../src/model/address.ts";
import { toReasonError } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import { bounded, stoppedWhile } from "./abort.ts";

/**
 * The addresses of a host, at least one, in the order in which they are to be tried.
 * Throws ReasonError: LOOKUP_ERROR, also after its own time-out, TIMEOUT with the signal, or what the policy says.
 */
export async function resolveHost(host: string, ctx: DriverContext): Promise<readonly [Address, ...Address[]]> {
  if (ctx.signal.aborted) throw stoppedWhile(`looking up ${host}`, ctx.signal);
  const { nameMs } = ctx.timeouts;
  const [first, ...rest] = await bounded(ctx.resolve ? ctx.resolve(host, ctx.signal) : systemAddresses(host), {
    signal: ctx.signal,
    timeoutMs: nameMs,
    onTimeout: () => new ReasonError("LOOKUP_ERROR", `no answer for the name ${host} within ${nameMs} ms`),
    onAbort: () => stoppedWhile(`looking up ${host}`, ctx.signal),
  }).catch((error: unknown) => {
    throw toReasonError(error);
  });
  if (!first) throw new ReasonError("LOOKUP_ERROR", `the name ${host} has no address`);
  return [first, ...rest];
}
