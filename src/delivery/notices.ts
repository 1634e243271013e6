import type { Log } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import type { SourceReport } from "../model/report.ts";
import { createGapTeller, type GapTellerOptions } from "./gaps.ts";
import type { Opening } from "./opening.ts";

/** What a sink's far side is told beside the values: how the sources stand, and what it will never get. */
export interface Tidings {
  open(opening: Opening): void;
  close(): void;
  /** The sources as they are now; a sink that is opened later is told them too. */
  describe(sources: readonly SourceReport[]): void;
  /** There are gaps to tell. */
  tellGaps(): void;
  /** Something of this opening is being told, or was when it failed. */
  isTelling(): boolean;
}

/** `gaps` undefined: this sink is told of none. */
export function createTidings(gaps: GapTellerOptions | undefined, log: Log): Tidings {
  const gapTeller = gaps && createGapTeller(gaps);
  let current: Opening | undefined;
  let sources: readonly SourceReport[] | undefined;
  let isDescribing = false;
  /** Of the opening of now: what was begun and has not succeeded. */
  let unfinished = 0;
  const telling = async (opening: Opening, tell: () => Promise<void>): Promise<void> => {
    unfinished++;
    await tell();
    if (opening === current) unfinished--;
  };

  const describe = async (): Promise<void> => {
    const opening = current;
    if (!opening?.sink.describe || isDescribing) return;
    isDescribing = true;
    try {
      for (let now = sources; now && opening === current; now = sources === now ? undefined : sources)
        await telling(opening, async () => opening.sink.describe?.(now, opening.ctx));
    } catch (error) {
      opening.lose(error);
    } finally {
      isDescribing = false;
      if (current && opening !== current) void describe();
    }
  };

  const tellGaps = async (): Promise<void> => {
    const opening = current;
    if (!opening || !gapTeller) return;
    try {
      await telling(opening, () => gapTeller.tell(opening.sink, opening.ctx));
    } catch (error) {
      if (error instanceof ReasonError) opening.lose(error);
      else log.debug({ err: error }, "the gaps cannot be read; they are told later");
    }
  };

  return {
    open(opening) {
      current = opening;
      unfinished = 0;
      void describe();
      void tellGaps();
    },
    close() {
      current = undefined;
    },
    describe(now) {
      sources = now;
      void describe();
    },
    tellGaps: () => void tellGaps(),
    isTelling: () => unfinished > 0,
  };
}
