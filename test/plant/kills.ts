import { setTimeout as delay } from "node:timers/promises";
import type { ServiceStatusJson } from "../support/collector-process.ts";
import { droppedOf } from "./view.ts";

/** What is killed, in this order, again and again. */
export const VICTIMS = ["broker", "store worker", "delivery worker", "collector"] as const;
export type Victim = (typeof VICTIMS)[number];

/** One kill -9. */
export interface Kill {
  readonly what: Victim;
  /** Since the demo began. */
  readonly at_s: number;
  /** Until values that were read after the kill had come from every data source; null: not within BACK_WITHIN_MS. */
  readonly back_ms: number | null;
}

const BETWEEN_MS = 1500;
const BACK_WITHIN_MS = 30_000;

export interface Killing {
  /** Kills it and, where it does not come back by itself, starts it again. */
  readonly kill: (what: Victim) => Promise<void>;
  /** Epoch ms of the newest readout that came from each data source, of all of them. */
  readonly newest: () => readonly number[];
  readonly elapsedS: () => number;
  /** The time is over: no further kill, once each was killed. */
  readonly over: () => boolean;
  /** At once, also in the first round. */
  readonly stopped: () => boolean;
  readonly tell: (line: string) => void;
}

/** Kills one after the other, each once the one before is back, until the time is over and each was killed at least once. */
export async function killInTurn({ kill, newest, elapsedS, over, stopped, tell }: Killing): Promise<readonly Kill[]> {
  const kills: Kill[] = [];
  const flowsSince = async (sinceMs: number): Promise<number | null> => {
    const began = performance.now();
    while (newest().some((ms) => ms <= sinceMs)) {
      if (stopped() || performance.now() - began > BACK_WITHIN_MS) return null;
      await delay(50);
    }
    return Math.round(performance.now() - began);
  };
  let isBack = (await flowsSince(0)) !== null;
  while (isBack && !stopped() && !(over() && kills.length >= VICTIMS.length)) {
    await delay(BETWEEN_MS);
    const what = VICTIMS[kills.length % VICTIMS.length] ?? "broker";
    const at_s = Math.round(elapsedS() * 10) / 10;
    const began = performance.now();
    const sinceMs = Date.now();
    tell(`${at_s} s: kill -9 of the ${what}`);
    try {
      await kill(what);
    } catch (error) {
      // Ctrl-C of a terminal ends the collector as well, also one that is just being started.
      if (stopped()) break;
      throw error;
    }
    isBack = (await flowsSince(sinceMs)) !== null;
    if (!isBack && stopped()) break;
    const back_ms = isBack ? Math.round(performance.now() - began) : null;
    kills.push({ what, at_s, back_ms });
    tell(`${elapsedS().toFixed(1)} s: ${isBack ? "values read after it arrive" : "no values after it"}`);
  }
  return kills;
}

/**
 * True: the account of this sink (by its name) is exact, and the subscriber has all of it: nothing waits, nothing was
 * dropped or refused, and it got exactly as many distinct values as were accepted.
 */
export function isExact({ sinks, buffer }: Pick<ServiceStatusJson, "sinks" | "buffer">, sink: string, distinct: number): boolean {
  const ledger = sinks.find(({ name }) => name === sink)?.ledger;
  if (!ledger) return false;
  const { accepted, delivered, unconfirmed, filtered, pending, dropped, delivered_unstored } = ledger;
  return (
    accepted > 0 &&
    accepted === delivered + unconfirmed + filtered + pending + droppedOf(dropped) &&
    pending === 0 &&
    droppedOf(dropped) === 0 &&
    delivered_unstored === 0 &&
    droppedOf(buffer.rejected) === 0 &&
    buffer.lost === null &&
    distinct === accepted
  );
}
