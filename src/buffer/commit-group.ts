import type { Layout } from "../model/layout.ts";
import type { Acknowledgement, CommitWork, LossAcknowledgement, NewBatch, RejectedSpan, RejectReason } from "./buffer.ts";
import type { Unsaved } from "./unsaved.ts";

/** Everything that came since the last commit and goes to disk in the next one. */
export class CommitGroup {
  #layouts: { readonly key: string; readonly layout: Layout }[] = [];
  #batches: NewBatch[] = [];
  #batchBytes = 0;
  #acknowledgements: Acknowledgement[] = [];
  #losses: LossAcknowledgement[] = [];
  #stampsUsed: number[] = [];
  /** Values of batches that were rejected, and of earlier processes. */
  #notStored = 0;
  #overflowBefore = 0;
  #notStoredSpan: RejectedSpan | undefined;
  #overflowSpan: RejectedSpan | undefined;
  readonly #deliveredUnstored = new Map<string, number>();

  /** Values that batches left out which were rejected. */
  #suppressed = 0;

  /** Payload bytes of its batches. */
  get batchBytes(): number {
    return this.#batchBytes;
  }

  get hasBatches(): boolean {
    return this.#batches.length > 0;
  }

  get batches(): readonly NewBatch[] {
    return this.#batches;
  }

  /** Values that its batches left out. */
  get suppressed(): number {
    return this.#suppressed + suppressedIn(this.#batches);
  }

  /** Values that are rejected, and not in the file yet; without those of this run that are counted in `overflowOfRun`. */
  get rejected(): Readonly<Partial<Record<RejectReason, number>>> {
    return { not_stored: this.#notStored, overflow: this.#overflowBefore };
  }

  /** Values that an earlier process has lost. */
  addLost({ waiting, notStored, overflow, from, to }: Omit<Unsaved, "run">): void {
    this.#notStored += waiting + notStored;
    this.#overflowBefore += overflow;
    if (from === undefined || to === undefined) return;
    // How many of them were explored only is not kept.
    const span = { from, to, explorationCount: 0 };
    if (waiting + notStored > 0) this.#notStoredSpan = joinSpans(this.#notStoredSpan, span);
    if (overflow > 0) this.#overflowSpan = joinSpans(this.#overflowSpan, span);
  }

  addLayout(key: string, layout: Layout): void {
    this.#layouts.push({ key, layout });
  }

  addBatches(batches: readonly NewBatch[]): void {
    for (const batch of batches) {
      this.#batches.push(batch);
      this.#batchBytes += batch.payload.byteLength;
    }
  }

  addAcknowledgements(acknowledgements: readonly Acknowledgement[]): void {
    this.#acknowledgements.push(...acknowledgements);
  }

  addLosses(losses: readonly LossAcknowledgement[]): void {
    this.#losses.push(...losses);
  }

  addStampsUsed(ids: readonly number[]): void {
    for (const id of ids) this.#stampsUsed.push(id);
  }

  addDeliveredUnstored(sink: string, values: number): void {
    this.#deliveredUnstored.set(sink, (this.#deliveredUnstored.get(sink) ?? 0) + values);
  }

  /** The place where the values lie that the host had no room for. */
  addOverflow(span: RejectedSpan): void {
    this.#overflowSpan = joinSpans(this.#overflowSpan, span);
  }

  /** Of all values that are not in the file: those that wait, and those that were rejected. */
  span(): RejectedSpan | undefined {
    const spans = [this.#notStoredSpan, this.#overflowSpan].filter((span) => span !== undefined);
    return [...spans, ...this.#batches.map(spanOf)].reduce(joinSpans, undefined as RejectedSpan | undefined);
  }

  /** Forgets what a new file gets again or cannot use; the counts stay. */
  forgetUnanswered(): void {
    this.#layouts = [];
    this.#batches = [];
    this.#batchBytes = 0;
    this.#acknowledgements = [];
    this.#losses = [];
    this.#stampsUsed = [];
  }

  /** Takes the batches out and counts their values as not stored. */
  rejectBatches(): readonly NewBatch[] {
    const batches = this.#batches;
    this.#notStored += valuesIn(batches);
    for (const batch of batches) this.#notStoredSpan = joinSpans(this.#notStoredSpan, spanOf(batch));
    this.#suppressed += suppressedIn(batches);
    this.#batches = [];
    this.#batchBytes = 0;
    return batches;
  }

  work(run: string, overflowOfRun: number): CommitWork {
    return {
      run,
      layouts: this.#layouts,
      batches: this.#batches,
      acknowledgements: this.#acknowledgements,
      losses: this.#losses,
      stampsUsed: this.#stampsUsed,
      suppressed: this.suppressed,
      rejected: this.rejected,
      rejectedSpans: {
        ...(this.#notStoredSpan && { not_stored: this.#notStoredSpan }),
        ...(this.#overflowSpan && { overflow: this.#overflowSpan }),
      },
      overflowOfRun,
      deliveredUnstored: [...this.#deliveredUnstored].map(([sink, values]) => ({ sink, values })),
    };
  }
}

/** Values that the batches leave out. */
export const suppressedIn = (batches: readonly NewBatch[]): number => batches.reduce((sum, { suppressed = 0 }) => sum + suppressed, 0);

/** Values of all variables. */
export const valuesIn = (batches: readonly Pick<NewBatch, "count" | "explorationCount">[]): number =>
  batches.reduce((sum, { count, explorationCount }) => sum + count + explorationCount, 0);

/** Of one readout. Pure. */
export function spanOf({
  time,
  explorationCount,
  clockSynced,
  bootTimeMs,
}: Omit<NewBatch, "seq" | "layoutKey" | "payload" | "count" | "suppressed" | "shown">): RejectedSpan {
  const wrongMs = clockSynced === false ? bootTimeMs : undefined;
  return { from: time, fromBootTimeMs: wrongMs, to: time, toBootTimeMs: wrongMs, explorationCount };
}

/** Both as one. Pure. */
export function joinSpans(a: RejectedSpan | undefined, b: RejectedSpan): RejectedSpan {
  if (!a) return b;
  const [first, last] = [a.from <= b.from ? a : b, a.to >= b.to ? a : b];
  return {
    from: first.from,
    fromBootTimeMs: first.fromBootTimeMs,
    to: last.to,
    toBootTimeMs: last.toBootTimeMs,
    explorationCount: a.explorationCount + b.explorationCount,
  };
}
