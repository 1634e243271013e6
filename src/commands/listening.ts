import { loadPolicy, policyFile } from "../configuration/policy-file.ts";
import { SettingsError } from "../configuration/strict-yaml.ts";
import { listenRefusal, permitOf } from "../lib/policy.ts";
import { endText, literalAddress } from "../model/address.ts";
import { errorCode } from "../model/failure.ts";
import type { Policy } from "../model/policy.ts";
import { UsageError } from "./io.ts";

/** What verbs share that listen as a device until a person stops them: on loopback, or where the policy opens an address. */

export const LOOPBACK = "127.0.0.1";
/** Below it, only root may listen. */
const FIRST_FREE_PORT = 1024;
const MOVED_BY = 1000;

export interface Place {
  readonly host: string;
  readonly port: number;
}

/** A port that needs no rights, for a device that has this one: the same, or 1000 more below 1024. */
export const freePortFor = (port: number): number => (port < FIRST_FREE_PORT ? port + MOVED_BY : port);

/** `10.0.0.5`, `10.0.0.5:502`, `[fd00::5]:502`, `fd00::5`; undefined: something else. */
export function addressAndPort(text: string): { readonly address: string; readonly port?: number } | undefined {
  const literal = literalAddress(text);
  if (literal) return { address: literal.address };
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const address = bracketed ?? plain ?? "";
  const port = digits === undefined ? undefined : Number(digits);
  const known = literalAddress(address);
  if (!known || (port ?? 0) > 65_535) return undefined;
  return { address: known.address, ...(port !== undefined && { port }) };
}

/** Where `--listen` says, on `usualPort` where that names none. Throws UsageError for another form, and where the policy does not open it. */
export function placeOf(listen: string | undefined, usualPort: number, policy: Policy): Place {
  const given = listen?.replace(/^localhost(?=:|$)/, LOOPBACK) ?? LOOPBACK;
  const place = /^\d{1,5}$/.test(given) ? addressAndPort(`${LOOPBACK}:${given}`) : addressAndPort(given);
  if (!place) throw new UsageError(`--listen ${listen}: expected an address of this machine and a port, such as ${LOOPBACK}:${usualPort}`);
  const { address: host, port = usualPort } = place;
  const refusal = listenRefusal(policy, endText({ address: host, port }));
  if (refusal !== undefined) throw new UsageError(`--listen: ${refusal}`);
  return { host, port };
}

/** The policy beside the settings. Throws UsageError where it cannot be used. */
export function policyFor(config: string | undefined): Policy {
  try {
    return loadPolicy(policyFile(config)).policy;
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageError(error.message);
    throw error;
  }
}

/** What a data source of the service needs before it may read here; empty: nothing. */
export function readingNotes(policy: Policy, { host, port }: Place): readonly string[] {
  const closed = literalAddress(host) === undefined ? undefined : permitOf(policy, "sources")(host, port);
  return closed === undefined ? [] : [`for a data source of the service: ${closed}`];
}

/** Why one cannot listen there. */
export function listenFailure(error: unknown, { host, port }: Place): UsageError {
  const where = endText({ address: host, port });
  const code = errorCode(error);
  const words: Readonly<Record<string, string>> = {
    EADDRINUSE: `${where} is taken by another program; choose another port`,
    EACCES: `${where}: this user may not listen below port ${FIRST_FREE_PORT}; choose one above, such as ${freePortFor(port)}`,
    EADDRNOTAVAIL: `${host} is not an address of this machine`,
  };
  return new UsageError(`--listen: ${words[code] ?? `cannot listen on ${where} (${code || String(error)})`}`);
}

/** Settles when the person stops the verb. */
export const stopped = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
