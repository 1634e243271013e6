import type { OpcuaRead } from "./plan.ts";
import { codeOf, STATUS } from "./status-codes.ts";

/** At least this between two looks for where paths lead now, and at most that where it does not help. */
const LEAST_GAP_MS = 30_000;
const MOST_GAP_MS = 600_000;

/** Subscriptions say the second of a node that was there. */
const GONE: ReadonlySet<number> = new Set([STATUS.BadNodeIdUnknown, STATUS.BadNodeIdInvalid]);

/** A path whose node the server does not know: it may lead elsewhere by now. A plain node id is what it is. Pure. */
export function gonePath({ points }: OpcuaRead, values: readonly ({ readonly status: number } | undefined)[]): string | undefined {
  for (let i = 0; i < values.length; i++) {
    const status = values[i]?.status ?? 0;
    if (status === 0 || !GONE.has(codeOf(status))) continue;
    const address = points[i]?.address;
    if (address?.kind === "resolved" && address.path !== undefined) return address.path;
  }
  return undefined;
}

/** Bounds how often paths are looked up because their nodes are gone: a server may name nodes that it does not know. */
export class LookUpGap {
  readonly #now: () => number;
  #lastMs = Number.NEGATIVE_INFINITY;
  #gapMs = LEAST_GAP_MS;

  /** `now`: monotonic ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** True: they may be looked up at this moment; the next time is later where the last was in vain. */
  pass(): boolean {
    const sinceMs = this.#now() - this.#lastMs;
    if (sinceMs < this.#gapMs) return false;
    this.#gapMs = sinceMs < 2 * this.#gapMs ? Math.min(2 * this.#gapMs, MOST_GAP_MS) : LEAST_GAP_MS;
    this.#lastMs = this.#now();
    return true;
  }
}
