import type { Gap, GapAcknowledgement } from "../buffer/buffer.ts";
import type { Context } from "../model/context.ts";
import type { Sink } from "../sinks/sink.ts";

export interface GapTellerOptions {
  /** What is to be told now. Throws if the file cannot be read. */
  readonly gaps: () => readonly Gap[];
  readonly epoch: () => string;
  readonly published: (gap: Omit<GapAcknowledgement, "sink">) => void;
}

/** Tells one sink's far side what it will never get. */
export interface GapTeller {
  /** Publishes what was not published to this target as it is now. Calls may overlap. Throws what the sink or the file throws. */
  tell(target: Sink, ctx: Context): Promise<void>;
}

export function createGapTeller({ gaps, epoch, published }: GapTellerOptions): GapTeller {
  /** By target and reason: number and values. The file shows a gap as open until its acknowledgement is committed. */
  const told = new WeakMap<Sink, Map<string, string>>();
  let underWay: { readonly target: Sink; again: boolean } | undefined;

  const tellOnce = async (target: Sink, ctx: Context): Promise<void> => {
    const before = told.get(target) ?? new Map<string, string>();
    told.set(target, before);
    for (const { reason, number, from, to, values } of gaps()) {
      const state = `${number}/${values}`;
      if (before.get(reason) === state || !target.tellGap) continue;
      before.set(reason, state);
      const isHeld = await target.tellGap({ id: `${epoch().slice(0, 8)}-${reason}-${number}`, reason, from, to, values }, ctx);
      if (isHeld) published({ reason, number, values });
    }
  };

  return {
    async tell(target, ctx) {
      if (!target.tellGap) return;
      if (underWay?.target === target) {
        underWay.again = true;
        return;
      }
      const mine = { target, again: true };
      underWay = mine;
      try {
        while (mine.again) {
          mine.again = false;
          await tellOnce(target, ctx);
        }
      } finally {
        if (underWay === mine) underWay = undefined;
      }
    },
  };
}
