import type { Loss, LossAcknowledgement } from "../buffer/buffer.ts";
import type { Context } from "../model/context.ts";
import type { Sink } from "../sinks/sink.ts";

export interface LossPublisherOptions {
  /** The losses of this sink that are not acknowledged. Throws if the file cannot be read. */
  readonly losses: () => readonly Loss[];
  readonly epoch: () => string;
  readonly published: (loss: Omit<LossAcknowledgement, "sink">) => void;
}

/** Publishes over one sink, through all its openings, the losses in its values. */
export class LossPublisher {
  readonly #options: LossPublisherOptions;
  /** By opening and reason: number and values. The file shows a loss as open until its acknowledgement is committed. */
  readonly #published = new WeakMap<Sink, Map<string, string>>();
  #underWay: { readonly sink: Sink; again: boolean } | undefined;

  constructor(options: LossPublisherOptions) {
    this.#options = options;
  }

  /** Publishes the losses that this opening has not got as they are now. Calls may overlap. Throws what the sink or the file throws. */
  async publish(sink: Sink, ctx: Context): Promise<void> {
    if (!sink.publishLoss) return;
    if (this.#underWay?.sink === sink) {
      this.#underWay.again = true;
      return;
    }
    const mine = { sink, again: true };
    this.#underWay = mine;
    try {
      while (mine.again) {
        mine.again = false;
        await this.#publishOnce(sink, ctx);
      }
    } finally {
      if (this.#underWay === mine) this.#underWay = undefined;
    }
  }

  async #publishOnce(sink: Sink, ctx: Context): Promise<void> {
    const { losses, epoch, published } = this.#options;
    const before = this.#published.get(sink) ?? new Map<string, string>();
    this.#published.set(sink, before);
    for (const { reason, number, from, to, values } of losses()) {
      const state = `${number}/${values}`;
      if (before.get(reason) === state || !sink.publishLoss) continue;
      before.set(reason, state);
      const isHeld = await sink.publishLoss({ id: `${epoch().slice(0, 8)}-${reason}-${number}`, reason, from, to, values }, ctx);
      if (isHeld) published({ reason, number, values });
    }
  }
}
