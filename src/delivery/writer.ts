import type { StoredBatch } from "../buffer/buffer.ts";
import type { Log } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import type { SinkBatch, WriteResult } from "../sinks/sink.ts";
import type { Outcome } from "./acknowledgements.ts";
import { type Decoded, decodeJob, withRefused } from "./decode.ts";
import type { DeliveryQueue, Job } from "./delivery-queue.ts";
import { type AttemptOptions, type Prepared, prepare, refusedOf } from "./isolation/attempt.ts";
import { isFull, isHoldOver } from "./isolation/holds.ts";
import { placesOf, valuesIn } from "./isolation/pieces.ts";
import { newIsolation } from "./isolation/state.ts";
import { apartDueMs, type Event, isIsolating, isQuiet, keeping, nextApart, step } from "./isolation/step.ts";
import { isOverwhelmed, isSuspected, maxMessageBytes } from "./isolation/suspects.ts";
import type { Opening } from "./opening.ts";
import type { SinkState } from "./sink-state.ts";

export interface WriterOptions extends AttemptOptions {
  readonly queue: DeliveryQueue;
  readonly log: Log;
  /** These rows are about to be sent. */
  readonly sending: (rows: readonly StoredBatch[]) => readonly StoredBatch[];
  /** The report of the sink. */
  readonly state: Pick<SinkState, "wrote" | "dropped" | "recovered" | "held" | "keeping">;
  /** About how many bytes a sink may make of what is written at once, but for a single batch. */
  readonly maxUnderWayBytes: number;
}

/** After the file could not be read. */
const READ_PAUSE_MS = 1000;
/** A server that closes the connection so soon after a refusal may do so because of it. */
const CLOSED_ON_REFUSAL_MS = 2000;
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Writes are started for so long before timers and sockets have their turn. */
const SLICE_MS = 2;

/** Writes the next jobs of the queue to the sink, as many at once as the sink takes; between them suspects, alone. */
export class Writer {
  readonly #options: WriterOptions;
  /** Every decision about what is refused, held or suspected is taken from it. */
  readonly #isolation = newIsolation();
  /** Normal jobs that the sink has. */
  readonly #jobs = new Set<Job>();
  #opening: Opening | undefined;
  #underWay = 0;
  #underWayBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Immediate | undefined;
  #isDraining = false;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  open(opening: Opening): void {
    this.#opening = opening;
    this.#learn({ what: "opened" });
    this.#options.queue.open();
    this.wake();
  }

  /** The sink is closed: rows without an acknowledgement go back to the backlog. */
  close(): void {
    this.#opening = undefined;
    clearTimeout(this.#timer);
    this.#options.queue.close();
  }

  /** The file is another one, or is gone: its rows come again. */
  forget(): void {
    this.#learn({ what: "left" });
    this.#jobs.clear();
    this.#reportKept();
  }

  isIdle(): boolean {
    return this.#underWay === 0;
  }

  /** Values wait on purpose: they are held, or tried in messages of their own. */
  holdsBack(): boolean {
    return this.#isolation.isGivenUp || this.#isolation.suspects.length > 0 || keeping(this.#isolation) !== undefined;
  }

  /** Values pass over this opening, while suspects are being isolated. */
  isIsolating(): boolean {
    return isIsolating(this.#isolation);
  }

  /** The server has just refused something: it may close the connection because of it. */
  hasJustRefused(): boolean {
    return performance.now() - this.#isolation.refusedMs < CLOSED_ON_REFUSAL_MS;
  }

  /** Only what is live is still to be written. */
  drain(): void {
    this.#isDraining = true;
    this.wake();
  }

  /** This opening ends, and not because of what is written. */
  giveUp(): void {
    this.#learn({ what: "given_up" });
  }

  /** No timer is left. */
  end(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#soon);
  }

  /** The sink was lost: returns how many writes were under way. `isPublishing`: notices were, too. */
  lost({ message }: ReasonError, isPublishing: boolean): number {
    const jobs = [...this.#jobs].map(keyOf);
    this.#jobs.clear();
    const writes = jobs.length + this.#isolation.underWay.length;
    this.#learn({ what: "lost", jobs, why: message, isPublishing });
    this.#reportKept();
    return writes;
  }

  /** Starts writes for a slice, and comes back for the next: the messages that a sink sends in one turn leave in one packet. */
  wake(): void {
    const untilMs = performance.now() + SLICE_MS;
    while (this.#startOne() && performance.now() < untilMs);
  }

  /** True: one was started. */
  #startOne(): boolean {
    clearTimeout(this.#timer);
    const before = this.#underWay;
    const opening = this.#opening;
    const { isGivenUp, notBeforeMs, wasApart } = this.#isolation;
    if (!opening || isGivenUp || isQuiet(this.#isolation) || this.#isFull(opening)) return false;
    const nowMs = performance.now();
    if (nowMs < notBeforeMs) {
      this.#wakeAt(notBeforeMs, nowMs);
      return false;
    }
    try {
      this.#learn({ what: "time" }, nowMs);
      this.#reportKept();
      const hasStarted = wasApart
        ? this.#writeNext(opening, nowMs) || this.#writeApart(opening, nowMs)
        : this.#writeApart(opening, nowMs) || this.#writeNext(opening, nowMs);
      if (!hasStarted) this.#wakeAt(this.#nextDueMs(nowMs), nowMs);
      return this.#underWay > before;
    } catch (error) {
      this.#unreadable(error);
      return false;
    }
  }

  #isFull({ sink }: Opening): boolean {
    return this.#underWay >= sink.inFlight || this.#underWayBytes >= this.#options.maxUnderWayBytes;
  }

  #wakeSoon(): void {
    this.#soon ??= setImmediate(() => {
      this.#soon = undefined;
      this.wake();
    });
  }

  /** Infinite: another event wakes it. */
  #wakeAt(atMs: number, nowMs: number): void {
    if (Number.isFinite(atMs)) this.#timer = setTimeout(() => this.wake(), Math.min(Math.max(1, atMs - nowMs), MAX_TIMER_MS));
  }

  #nextDueMs(nowMs: number): number {
    const queueMs = isFull(this.#isolation) ? undefined : this.#options.queue.nextDueMs();
    return Math.min(queueMs ?? Number.POSITIVE_INFINITY, this.#isDraining ? Number.POSITIVE_INFINITY : apartDueMs(this.#isolation, nowMs));
  }

  #start(work: Promise<void>, writtenBytes = 0): void {
    this.#underWay++;
    this.#underWayBytes += writtenBytes;
    void work.finally(() => {
      this.#underWay--;
      this.#underWayBytes -= writtenBytes;
      this.#wakeSoon();
    });
    this.#wakeSoon();
  }

  /** Writes what is due apart from the others. True: also where the others wait for it. Throws if the file cannot be read. */
  #writeApart(opening: Opening, nowMs: number): boolean {
    const due = this.#isDraining ? undefined : nextApart(this.#isolation, nowMs, this.isIdle());
    if (!due) return false;
    if ("untilMs" in due) {
      this.#wakeAt(due.untilMs, nowMs);
      return true;
    }
    const { queue, sending } = this.#options;
    const prepared = prepare(due, (row) => queue.readHeld(row), this.#options);
    const { attempt, gone, damaged, filtered, rows, batch } = prepared;
    this.#learn({ what: "begun", attempt, gone, damaged, filtered }, nowMs);
    if (!batch || !this.#isolation.underWay.includes(attempt)) {
      this.#wakeSoon();
      return true;
    }
    sending(rows);
    this.#start(this.#attempt(opening, prepared, batch));
    return true;
  }

  async #attempt(opening: Opening, { attempt, rowOf }: Prepared, batch: SinkBatch): Promise<void> {
    let result: WriteResult;
    try {
      result = await opening.sink.write(batch, opening.ctx);
    } catch (error) {
      opening.lose(error);
      return;
    }
    const { refused, detail, refusals = [] } = result;
    const { due, pieces, places } = attempt;
    // A suspect has come here by a refusal, whatever the server says of it now.
    const some = due.what === "held" ? refusals : refusals.map((refusal) => ({ parts: refusal.parts, detail: refusal.detail }));
    this.#learn({ what: "tried", attempt, refused, detail, refusals: refusedOf(some, batch, rowOf, places, pieces) });
    this.#afterWrite(opening);
  }

  /** Throws if the file cannot be read. */
  #writeNext(opening: Opening, nowMs: number): boolean {
    if (isFull(this.#isolation)) return false;
    const { queue } = this.#options;
    const job = queue.next(nowMs, opening.sink.inFlight, opening.sink.older?.());
    if (!job) return false;
    if (isSuspected(this.#isolation, keyOf(job))) {
      this.#suspect(job);
      this.#wakeSoon();
      return true;
    }
    this.#learn({ what: "writing" }, nowMs);
    this.#start(this.#write(opening, job), job.group.writtenBytes);
    return true;
  }

  #suspect(job: Job): void {
    const { queue, takesExploration } = this.#options;
    if (!queue.settle(job, [])) return;
    const { layout, rows } = job.group;
    const pieces = rows.map(({ id, count, explorationCount }) => ({
      row: id,
      from: 0,
      values: count + (takesExploration ? explorationCount : 0),
    }));
    this.#learn({ what: "suspected", job: keyOf(job), layout, backlog: job.backlog, pieces });
  }

  async #write(opening: Opening, job: Job): Promise<void> {
    const { queue, layout, sending } = this.#options;
    let decoded: Decoded;
    try {
      const found = layout(job.group.layout);
      const rows = found ? sending(job.group.rows) : job.group.rows;
      decoded = decodeJob({ ...job, group: { ...job.group, rows } }, found, this.#options);
    } catch (error) {
      this.#unreadable(error);
      return;
    }
    if (!decoded.batch) {
      queue.settle(job, decoded.outcomes);
      return;
    }
    const startMs = performance.now();
    const maxBytes = maxMessageBytes(this.#isolation, startMs);
    const isRetry = isHoldOver(this.#isolation, decoded.batch.layout.source.uuid, startMs);
    const batch = { ...decoded.batch, ...(isRetry && { isRetry }), ...(maxBytes !== undefined && { maxMessageBytes: maxBytes }) };
    this.#jobs.add(job);
    try {
      const result = await opening.sink.write(batch, opening.ctx);
      this.#jobs.delete(job);
      this.#settle(job, batch, { ...decoded, outcomes: withRefused(decoded.outcomes, result.refused) }, result);
      this.#afterWrite(opening);
    } catch (error) {
      opening.lose(error);
    }
  }

  /** Rows with refused messages are held, the others are done. */
  #settle(job: Job, batch: SinkBatch, { rowsRead, outcomes }: Decoded, { refused, detail, refusals = [] }: WriteResult): void {
    const { layout, rows } = job.group;
    const rowOf = (readout: number): number | undefined => rows[rowsRead[readout] ?? -1]?.id;
    const places = refusals.length > 0 ? placesOf(batch, rowOf, this.#options.takesExploration) : new Map<number, readonly number[]>();
    const sorted = refusedOf(refusals, batch, rowOf, places);
    const refusedRows = new Set(sorted.flatMap(({ pieces }) => pieces.map(({ row }) => row)));
    const ofRows = new Map<number, Outcome>();
    const kept = outcomes.map((outcome, i) => {
      const { id } = rows[i] ?? { id: 0 };
      if (!refusedRows.has(id)) return outcome;
      ofRows.set(id, outcome);
      return undefined;
    });
    const isHeld = this.#options.queue.settle(job, kept);
    const taken =
      outcomes.reduce((sum, { delivered }) => sum + delivered, 0) - sorted.reduce((sum, { pieces }) => sum + valuesIn(pieces), 0);
    this.#learn({
      what: "written",
      job: keyOf(job),
      source: batch.layout.source.uuid,
      layout,
      backlog: job.backlog,
      taken,
      refused,
      detail: detail ?? refusals[0]?.detail,
      refusals: isHeld ? sorted : sorted.map((one) => ({ ...one, pieces: [] })),
      outcomes: ofRows,
    });
  }

  #learn(event: Event, nowMs = performance.now()): void {
    const { queue, state } = this.#options;
    for (const effect of step(this.#isolation, event, nowMs))
      if (effect.what === "settled") queue.settleHeld(effect.row, effect.outcome);
      else if (effect.what === "wrote") state.wrote(effect.source, effect.refused, effect.detail);
      else if (effect.what === "dropped") state.dropped(effect.values, effect.detail, effect.source);
      else if (effect.what === "recovered") state.recovered(effect.source);
      else state.held(effect.detail);
  }

  /** A server that refuses everything is left alone for a while, like one that cannot be reached. */
  #afterWrite(opening: Opening): void {
    this.#reportKept();
    if (!isOverwhelmed(this.#isolation) || opening !== this.#opening || this.#isolation.isGivenUp) return;
    this.giveUp();
    opening.lose(new ReasonError("UNKNOWN", `too many messages are refused; the last: ${this.#isolation.why ?? "without a word"}`));
  }

  #reportKept(): void {
    this.#options.state.keeping(keeping(this.#isolation));
  }

  /** Rows that were read go back to the backlog. */
  #unreadable(error: unknown): void {
    this.#options.log.debug({ err: error }, "the buffer cannot be read; it is tried again");
    this.#options.queue.close();
    if (this.#opening) this.#options.queue.open();
    this.#learn({ what: "unreadable", pauseMs: READ_PAUSE_MS });
    this.#wakeSoon();
  }
}

/** A job is named by its first row. */
const keyOf = ({ group: { rows } }: Job): number => rows[0]?.id ?? 0;
