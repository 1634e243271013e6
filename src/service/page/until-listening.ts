import { sleep } from "../../base/timer.ts";
import { messageOf } from "../../model/failure.ts";

const RETRY_MS = 10_000;

export interface Tries {
  /** Why it does not listen, in words, or null: it does. */
  readonly onTrouble: (words: string | null) => void;
  readonly signal: AbortSignal;
  readonly retryMs?: number | undefined;
}

/** Listens for the page's viewers; where it cannot, it says why and tries again. Undefined: it was stopped before. Never rejects. */
export async function untilListening<Served>(
  listen: () => Promise<Served>,
  { onTrouble, signal, retryMs = RETRY_MS }: Tries,
): Promise<Served | undefined> {
  while (!signal.aborted) {
    try {
      const served = await listen();
      onTrouble(null);
      return served;
    } catch (error) {
      onTrouble(`the page is not served: ${messageOf(error)}; it is tried again`);
      await sleep(retryMs, signal);
    }
  }
  return undefined;
}

/** The host and the port of `address:port`. Pure. */
export function placeOf(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(":");
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(address.slice(colon + 1)) };
}

/** An address for browsers. Pure. */
export const urlOf = (scheme: "http" | "https", host: string, port: number): string =>
  `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}/`;

/** A listener's refusal, with the setting. */
export const notListened = (address: string, error: unknown): Error =>
  new Error(`page.listen: ${address} cannot be listened on (${messageOf(error)})`, { cause: error });
