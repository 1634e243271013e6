import type { Log } from "../model/context.ts";
import type { Layout } from "../model/layout.ts";
import type { ReasonError } from "../model/reason.ts";
import { type Decoded, decodeJob, type Names, withRefused } from "./decode.ts";
import type { Flow, Job } from "./flow.ts";
import { createGuard } from "./guard.ts";
import type { Outcome } from "./lane.ts";
import type { Opening } from "./opening.ts";
import type { SinkBatch } from "./sink.ts";

export interface WriterOptions {
  readonly flow: Flow;
  readonly takesExploration: boolean;
  readonly log: Log;
  /** Layout by its id in the file; undefined: the file does not have it. Throws if the file cannot be read. */
  readonly layout: (id: number) => Layout | undefined;
  readonly names: () => Names;
  /** A write is through, with so many values refused for ever. */
  readonly wrote: (refused: number, detail: string | undefined) => void;
}

/** Takes from the flow what is next and writes it to the sink, as much at once as the sink takes. */
export interface Writer {
  open(opening: Opening): void;
  /** The sink is let go of: what is not acknowledged is left to the file. */
  close(): void;
  /** There may be more to write. */
  wake(): void;
  isIdle(): boolean;
  /** Why the sink was lost: how many writes were under way. `isTelling`: something else was, too. */
  lost(reason: ReasonError, isTelling: boolean): number;
  /** No timer is left. */
  end(): void;
}

/** A row's time may be any number. */
const timeText = (epochMs: number): string => (Math.abs(epochMs) <= 8.64e15 ? new Date(epochMs).toISOString() : String(epochMs));

/** After the file could not be read. */
const READ_PAUSE_MS = 1000;
/** An open connection that lasts so long without a write is not closed for another reason than the next write. */
const PROOF_MS = 500;
const MAX_TIMER_MS = 2 ** 31 - 1;

export function createWriter({ flow, takesExploration, log, layout, names, wrote }: WriterOptions): Writer {
  const guard = createGuard();
  let current: Opening | undefined;
  let underWay = 0;
  let timer: NodeJS.Timeout | undefined;
  let soon: NodeJS.Immediate | undefined;
  let notBeforeMs = 0;

  const wakeSoon = (): void => {
    soon ??= setImmediate(() => {
      soon = undefined;
      wake();
    });
  };

  /** Starts one write and comes back for the next, so that no slice of this thread is longer than one batch. */
  const wake = (): void => {
    clearTimeout(timer);
    const opening = current;
    const inFlight = guard.isAlone() ? 1 : (opening?.sink.inFlight ?? 0);
    if (!opening || underWay >= inFlight) return;
    const nowMs = performance.now();
    const waitMs = notBeforeMs - nowMs;
    if (waitMs > 0) {
      timer = setTimeout(wake, waitMs);
      return;
    }
    let job: Job | undefined;
    try {
      job = flow.next(nowMs, inFlight);
    } catch (error) {
      unreadable(error);
      return;
    }
    if (!job) {
      const dueMs = flow.nextDueMs();
      if (dueMs !== undefined) timer = setTimeout(wake, Math.min(Math.max(1, dueMs - nowMs), MAX_TIMER_MS));
      return;
    }
    underWay++;
    void write(opening, job).finally(() => {
      underWay--;
      wakeSoon();
    });
    wakeSoon();
  };

  /** What was taken from the file goes back to it. */
  const unreadable = (error: unknown): void => {
    log.debug({ err: error }, "the buffer cannot be read; it is tried again");
    flow.close();
    if (current) flow.open();
    notBeforeMs = performance.now() + READ_PAUSE_MS;
    wakeSoon();
  };

  const write = async (opening: Opening, job: Job): Promise<void> => {
    const outcomes: Outcome[] = [];
    for (const part of guard.partsOf(job)) {
      let decoded: Decoded;
      try {
        decoded = decodeJob(part, layout(part.group.layout), takesExploration, names());
      } catch (error) {
        unreadable(error);
        return;
      }
      try {
        const refused = decoded.batch ? await writePart(opening, part, decoded.batch) : 0;
        outcomes.push(...withRefused(decoded.outcomes, refused));
      } catch (error) {
        opening.lose(error);
        return;
      }
    }
    guard.held(job);
    flow.settle(job, outcomes);
  };

  /** Values that the sink refuses for ever. */
  const writePart = async ({ sink, ctx }: Opening, part: Job, batch: SinkBatch): Promise<number> => {
    const { closes, why, maxMessageBytes } = guard.verdictOf(part);
    if (closes !== undefined) {
      wrote(
        1,
        `${why}, ${closes} times right after the readout of ${batch.layout.source.name} of ${timeText(part.group.rows[0]?.time ?? 0)}: it is dropped; see the far side's log, it may limit the size of a message`,
      );
      guard.held(part);
      return Number.POSITIVE_INFINITY;
    }
    guard.begin(part);
    const whole = maxMessageBytes === undefined ? batch : { ...batch, maxMessageBytes };
    const { refused, detail } = await sink.write(whole, ctx);
    guard.held(part);
    wrote(refused, detail);
    return refused;
  };

  return {
    open(opening) {
      current = opening;
      flow.open();
      if (guard.isSuspicious()) notBeforeMs = performance.now() + PROOF_MS;
      wake();
    },
    close() {
      current = undefined;
      clearTimeout(timer);
      flow.close();
    },
    wake,
    isIdle: () => underWay === 0,
    lost: (reason, isTelling) => guard.lost(reason, isTelling),
    end: () => clearImmediate(soon),
  };
}
