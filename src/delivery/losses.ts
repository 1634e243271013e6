import type { Loss, LossAcknowledgement } from "../buffer/buffer.ts";
import type { Context } from "../model/context.ts";
import type { Sink } from "../sinks/sink.ts";

export interface LossPublisherOptions {
  /** The losses of this sink that are not acknowledged. Throws if the file cannot be read. */
  readonly losses: () => readonly Loss[];
  readonly epoch: () => string;
  readonly published: (loss: Omit<LossAcknowledgement, "sink">) => void;
}

/** What the disk did not take may be delivered at this moment: its loss is published once its count has been the same for so long. */
const SETTLE_MS = 2000;
/** A loss that the server refuses is published again after this time: a right may be given. */
const REFUSED_MS = 60_000;

/** The last publish of a loss. */
interface Published {
  /** Number, values and clock. */
  readonly state: string;
  /** Monotonic ms; absent: the server has it. */
  readonly againAtMs?: number;
}

/** Publishes over one sink, through all its openings, the losses in its values. */
export class LossPublisher {
  readonly #options: LossPublisherOptions;
  /** By opening and reason. The file shows a loss as open until its acknowledgement is committed. */
  readonly #published = new WeakMap<Sink, Map<string, Published>>();
  /** The loss of values that were not stored, as it was seen first. */
  #unsettled = { state: "", sinceMs: 0 };
  #underWay: { readonly sink: Sink; again: boolean } | undefined;

  constructor(options: LossPublisherOptions) {
    this.#options = options;
  }

  /**
   * Publishes the losses that this opening has not got as they are now. Calls may overlap. Throws what the sink or the file throws. Returns
   * in how many ms it is to be called again without another reason; undefined: not.
   */
  async publish(sink: Sink, ctx: Context): Promise<number | undefined> {
    if (!sink.publishLoss) return undefined;
    if (this.#underWay?.sink === sink) {
      this.#underWay.again = true;
      return undefined;
    }
    let againMs: number | undefined;
    const mine = { sink, again: true };
    this.#underWay = mine;
    try {
      while (mine.again) {
        mine.again = false;
        againMs = await this.#publishOnce(sink, ctx);
      }
    } finally {
      if (this.#underWay === mine) this.#underWay = undefined;
    }
    return againMs;
  }

  async #publishOnce(sink: Sink, ctx: Context): Promise<number | undefined> {
    let againMs: number | undefined;
    const { losses, epoch, published } = this.#options;
    const before = this.#published.get(sink) ?? new Map<string, Published>();
    this.#published.set(sink, before);
    for (const { number, ...loss } of losses()) {
      const { reason, values, clock } = loss;
      const state = `${number}/${values}/${clock ?? ""}`;
      const last = before.get(reason);
      const waitMs = (last?.againAtMs ?? 0) - performance.now();
      if (waitMs > 0) againMs = Math.min(againMs ?? waitMs, waitMs);
      if (waitMs > 0 || (last?.againAtMs === undefined && last?.state === state) || !sink.publishLoss) continue;
      if (reason === "not_stored" && !this.#isSettled(state)) {
        againMs = Math.min(againMs ?? SETTLE_MS, SETTLE_MS);
        continue;
      }
      before.set(reason, { state });
      const isHeld = await sink.publishLoss({ id: `${epoch().slice(0, 8)}-${reason}-${number}`, ...loss }, ctx);
      if (isHeld) published({ reason, number, values });
      else {
        before.set(reason, { state, againAtMs: performance.now() + REFUSED_MS });
        againMs = Math.min(againMs ?? REFUSED_MS, REFUSED_MS);
      }
    }
    return againMs;
  }

  #isSettled(state: string): boolean {
    const nowMs = performance.now();
    if (this.#unsettled.state !== state) this.#unsettled = { state, sinceMs: nowMs };
    return nowMs - this.#unsettled.sinceMs >= SETTLE_MS;
  }
}
