import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import { describeRead, type ModbusRead } from "./plan.ts";

/** A request that was sent within this of an answer, and had none itself, may have come too soon. */
const HURRIED_MS = 20;
/** Answers to such a request by itself, after which it was too soon. */
const PROOFS = 2;
/** Suspected at once, at most. */
const MAX_SUSPECTS = 16;
/** Pauses that are tried, ms: a serial line's turnaround, a slow gateway, a slower one. */
const PAUSES_MS = [100, 300, 1000] as const;
const MEMORY = "hurry";

interface Known {
  /** Requests that had no answer right after another one had. */
  readonly suspects: readonly string[];
  readonly proofs: number;
  /** Index in PAUSES_MS; -1: none is known to be needed. */
  readonly step: number;
}

const NOTHING: Known = { suspects: [], proofs: 0, step: -1 };

/**
 * A device may want a pause between an answer and the next request: it loses what comes too soon, and answers the same request by itself.
 * Learned from what is read anyhow. Kept with the device, and with the source over restarts.
 */
export class Hurry {
  readonly #ctx: Pick<DriverContext, "device" | "kept" | "log">;
  #known: Known;

  constructor(ctx: Pick<DriverContext, "device" | "kept" | "log">) {
    this.#ctx = ctx;
    const step = ctx.kept?.values[MEMORY];
    const kept = typeof step === "number" && step in PAUSES_MS ? { ...NOTHING, step } : NOTHING;
    this.#known = (ctx.device?.get(MEMORY) as Known | undefined) ?? kept;
  }

  /** Milliseconds between an answer and the next request; 0: none is needed, as far as is known. */
  get pauseMs(): number {
    return PAUSES_MS[this.#known.step] ?? 0;
  }

  /** `afterMs`: since the answer before, over this connection; infinity: it was the first. */
  answered(read: ModbusRead, afterMs: number): void {
    const known = this.#known;
    if (known.suspects.length === 0 || afterMs < Math.max(HURRIED_MS, this.pauseMs)) return;
    const what = describeRead(read);
    if (!known.suspects.includes(what)) return;
    const proofs = known.proofs + 1;
    const suspects = known.suspects.filter((one) => one !== what);
    if (proofs < PROOFS) this.#keep({ ...known, suspects, proofs });
    else this.#learn(known.step + 1);
  }

  /** It had no answer, and why. */
  failed(read: ModbusRead, afterMs: number, error: unknown): void {
    const isSilent = error instanceof ReasonError && error.reason.type === "TIMEOUT";
    if (!isSilent || afterMs > HURRIED_MS + this.pauseMs) return;
    const known = this.#known;
    const what = describeRead(read);
    if (!known.suspects.includes(what)) this.#keep({ ...known, suspects: [...known.suspects, what].slice(-MAX_SUSPECTS) });
  }

  #learn(step: number): void {
    // No pause helps: it is something else.
    this.#keep({ ...NOTHING, step: step < PAUSES_MS.length ? step : -1 });
    const { pauseMs } = this;
    this.#ctx.kept?.set(MEMORY, step < PAUSES_MS.length ? step : -1);
    if (pauseMs > 0)
      this.#ctx.log.warn(
        {},
        `the device loses requests that come right after an answer: a pause of ${pauseMs} ms is kept from now on; min_pause: ${pauseMs} makes it permanent`,
      );
  }

  #keep(known: Known): void {
    this.#known = known;
    this.#ctx.device?.set(MEMORY, known);
  }
}
