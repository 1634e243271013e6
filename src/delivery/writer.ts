import type { Log } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import { type Decoded, decodeJob, withRefused } from "./decode.ts";
import type { DeliveryQueue, Job } from "./delivery-queue.ts";
import { Isolation, type IsolationOptions } from "./isolation.ts";
import type { Opening } from "./opening.ts";
import type { Suspect, Suspects } from "./suspects.ts";

export interface WriterOptions extends IsolationOptions {
  readonly queue: DeliveryQueue;
  readonly log: Log;
  /** A write of a source is through; so many of its values were refused and dropped. */
  readonly wrote: (source: string, refused: number, detail: string | undefined) => void;
  /** About how many bytes a sink may make of what is written at once, but for a single batch. */
  readonly maxUnderWayBytes: number;
  /** Why values are kept to be tried again; undefined: none are. */
  readonly keeping: (detail: string | undefined) => void;
}

/** After the file could not be read. */
const READ_PAUSE_MS = 1000;
/** An open connection that lasts so long, and so long after a refusal, is not closed for another reason than the next write. */
const PROOF_MS = 500;
/** A server that closes the connection so soon after a refusal may do so because of it. */
const CLOSED_ON_REFUSAL_MS = 2000;
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Writes the next jobs of the queue to the sink, as many at once as the sink takes; between them suspects, alone. */
export class Writer {
  readonly #options: WriterOptions;
  readonly #isolation: Isolation;
  readonly #suspects: Suspects;
  /** Normal jobs that the sink has. */
  readonly #jobs = new Set<Job>();
  #opening: Opening | undefined;
  #openedMs = 0;
  #passesBefore = 0;
  #refusals = 0;
  #refusedMs = Number.NEGATIVE_INFINITY;
  #underWay = 0;
  #underWayBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Immediate | undefined;
  #notBeforeMs = 0;
  #isDraining = false;
  /** A suspect was the last to be written: a normal job is next, so that others pass between suspects. */
  #wasSuspect = false;
  /** Normal jobs ended the opening before with nothing taken: in this one a suspect is first, or none would ever be tried. */
  #isSuspectFirst = false;
  /** This opening is ended from here: the writes under way are not the cause. */
  #isGivenUp = false;
  /** The last loss may have been due to a notice: once, the writes are not suspected for it. */
  #isInDoubt = false;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#isolation = new Isolation(options);
    this.#suspects = this.#isolation.suspects;
  }

  open(opening: Opening): void {
    this.#opening = opening;
    this.#openedMs = performance.now();
    this.#passesBefore = this.#suspects.passes;
    this.#isGivenUp = false;
    this.#suspects.opened();
    this.#options.queue.open();
    this.#wasSuspect = !this.#isSuspectFirst;
    if (this.#isInDoubt || this.#isSuspectFirst) this.#notBeforeMs = this.#openedMs + PROOF_MS;
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
    this.#isolation.clear();
    this.#jobs.clear();
    this.#reportKept();
  }

  isIdle(): boolean {
    return this.#underWay === 0;
  }

  /** What waits does so on purpose: it is held, or tried in messages of its own. */
  holdsBack(): boolean {
    return this.#isGivenUp || this.#suspects.size > 0 || this.#isolation.keeping() !== undefined;
  }

  /** Values pass over this opening, while suspects are being isolated. */
  isIsolating(): boolean {
    return this.#suspects.size > 0 && this.#suspects.passes > this.#passesBefore;
  }

  /** The server has just refused something: it may close the connection because of it. */
  hasJustRefused(): boolean {
    return performance.now() - this.#refusedMs < CLOSED_ON_REFUSAL_MS;
  }

  /** Only what is live is still to be written. */
  drain(): void {
    this.#isDraining = true;
    this.wake();
  }

  /** This opening ends, and not because of what is written. */
  giveUp(): void {
    this.#isGivenUp = true;
  }

  /** No timer is left. */
  end(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#soon);
  }

  /** The sink was lost: returns how many writes were under way. `isPublishing`: notices were, too. */
  lost({ message }: ReasonError, isPublishing: boolean): number {
    const jobs = [...this.#jobs];
    this.#jobs.clear();
    const writes = jobs.length + this.#isolation.underWay();
    this.#isSuspectFirst = jobs.length > 0 && this.#suspects.size > 0 && this.#suspects.passes === this.#passesBefore;
    if (this.#isGivenUp) {
      this.#isolation.release();
    } else if (writes === 0) {
      this.#isInDoubt &&= isPublishing;
    } else {
      this.#isInDoubt = isPublishing && !this.#isInDoubt;
      if (this.#isInDoubt) this.#isolation.release();
      else this.#isolation.lost(jobs, message);
      this.#reportKept();
    }
    return writes;
  }

  /** Starts one write and comes back for the next, so that no slice of this thread is longer than one batch. */
  wake(): void {
    clearTimeout(this.#timer);
    const opening = this.#opening;
    if (!opening || this.#isGivenUp || this.#isolation.isQuiet() || this.#isFull(opening)) return;
    const nowMs = performance.now();
    if (nowMs < this.#notBeforeMs) {
      this.#wakeAt(this.#notBeforeMs, nowMs);
      return;
    }
    try {
      this.#isolation.expire(nowMs);
      this.#reportKept();
      const hasStarted = this.#wasSuspect
        ? this.#writeNext(opening, nowMs) || this.#writeApart(opening, nowMs)
        : this.#writeApart(opening, nowMs) || this.#writeNext(opening, nowMs);
      if (!hasStarted) this.#wakeAt(this.#nextDueMs(nowMs), nowMs);
    } catch (error) {
      this.#unreadable(error);
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

  #wakeAt(atMs: number | undefined, nowMs: number): void {
    if (atMs !== undefined) this.#timer = setTimeout(() => this.wake(), Math.min(Math.max(1, atMs - nowMs), MAX_TIMER_MS));
  }

  #nextDueMs(nowMs: number): number | undefined {
    const suspectMs = this.#isDraining ? undefined : this.#suspects.nextDueMs();
    const heldMs = this.#isDraining ? undefined : this.#isolation.nextHeldMs();
    const provedMs = this.#openedMs + PROOF_MS;
    const apartMs = least(suspectMs === undefined ? undefined : Math.max(suspectMs, nowMs < provedMs ? provedMs : 0), heldMs);
    return least(apartMs, this.#isolation.isFull() ? undefined : this.#options.queue.nextDueMs());
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

  /**
   * True: others wait. One that needs quiet does until the connection has proved that it lasts, then until nothing else is under way, and
   * until the server has not closed the connection for a refusal.
   */
  #writeSuspect(opening: Opening, nowMs: number): boolean {
    if (this.#isDraining) return false;
    const suspect = this.#suspects.next(nowMs, nowMs - this.#openedMs >= PROOF_MS);
    if (!suspect) return false;
    if (suspect.needsQuiet && this.#underWay > 0) return true;
    if (suspect.needsQuiet && nowMs < this.#refusedMs + PROOF_MS) {
      this.#wakeAt(this.#refusedMs + PROOF_MS, nowMs);
      return true;
    }
    this.#wasSuspect = true;
    this.#start(this.#attempt(opening, suspect, nowMs));
    return true;
  }

  #writeApart(opening: Opening, nowMs: number): boolean {
    return this.#writeSuspect(opening, nowMs) || this.#writeHeld(opening, nowMs);
  }

  /** Throws if the file cannot be read. */
  #writeHeld(opening: Opening, nowMs: number): boolean {
    if (this.#isDraining) return false;
    const trying = this.#isolation.tryHeld(opening, nowMs, this.#suspects.maxMessageBytes(nowMs));
    if (!trying) return false;
    this.#wasSuspect = true;
    this.#start(trying.then(() => this.#afterWrite(opening)));
    return true;
  }

  async #attempt(opening: Opening, suspect: Suspect, nowMs: number): Promise<void> {
    try {
      await this.#isolation.attempt(suspect, opening, least(suspect.maxMessageBytes, this.#suspects.maxMessageBytes(nowMs)));
    } catch (error) {
      this.#unreadable(error);
      return;
    }
    this.#afterWrite(opening);
  }

  /** Throws if the file cannot be read. */
  #writeNext(opening: Opening, nowMs: number): boolean {
    if (this.#isolation.isFull()) return false;
    const job = this.#options.queue.next(nowMs, opening.sink.inFlight, opening.sink.older?.());
    if (!job) return false;
    if (this.#suspects.isSuspected(job)) {
      this.#isolation.hold(job);
      this.#wakeSoon();
      return true;
    }
    this.#wasSuspect = false;
    this.#start(this.#write(opening, job), job.group.writtenBytes);
    return true;
  }

  async #write(opening: Opening, job: Job): Promise<void> {
    const { queue, layout, takesExploration, names, sending, wrote } = this.#options;
    let decoded: Decoded;
    try {
      const found = layout(job.group.layout);
      const rows = found ? sending(job.group.rows) : job.group.rows;
      decoded = decodeJob({ ...job, group: { ...job.group, rows } }, found, takesExploration, names);
    } catch (error) {
      this.#unreadable(error);
      return;
    }
    if (!decoded.batch) {
      queue.settle(job, decoded.outcomes);
      return;
    }
    const source = decoded.batch.layout.source.uuid;
    const startMs = performance.now();
    const maxMessageBytes = this.#suspects.maxMessageBytes(startMs);
    const isRetry = this.#isolation.isHoldOver(source, startMs);
    const batch =
      maxMessageBytes === undefined && !isRetry
        ? decoded.batch
        : { ...decoded.batch, isRetry, ...(maxMessageBytes !== undefined && { maxMessageBytes }) };
    this.#jobs.add(job);
    try {
      const { refused, detail, refusals = [] } = await opening.sink.write(batch, opening.ctx);
      this.#jobs.delete(job);
      const outcomes = withRefused(decoded.outcomes, refused);
      const nowMs = performance.now();
      let dropped = refused;
      if (refusals.length > 0) dropped += this.#isolation.settle(job, batch, { ...decoded, outcomes }, refusals, nowMs);
      else {
        queue.settle(job, outcomes);
        if (outcomes.some(({ delivered }) => delivered > 0)) {
          this.#suspects.passed(job);
          this.#isolation.passed(source, nowMs);
        }
      }
      wrote(source, dropped, detail ?? refusals[0]?.detail);
      if (refused > 0) this.#suspects.refusals++;
      this.#afterWrite(opening);
    } catch (error) {
      opening.lose(error);
    }
  }

  /** A server that refuses everything is left alone for a while, like one that cannot be reached. */
  #afterWrite(opening: Opening): void {
    this.#reportKept();
    if (this.#refusals !== this.#suspects.refusals) this.#refusedMs = performance.now();
    this.#refusals = this.#suspects.refusals;
    if (!this.#suspects.isOverwhelmed() || opening !== this.#opening || this.#isGivenUp) return;
    this.#isGivenUp = true;
    opening.lose(new ReasonError("UNKNOWN", `too many messages are refused; the last: ${this.#isolation.why ?? "without a word"}`));
  }

  #reportKept(): void {
    this.#options.keeping(this.#isolation.keeping());
  }

  /** Rows that were read go back to the backlog. */
  #unreadable(error: unknown): void {
    this.#options.log.debug({ err: error }, "the buffer cannot be read; it is tried again");
    this.#options.queue.close();
    if (this.#opening) this.#options.queue.open();
    this.#notBeforeMs = performance.now() + READ_PAUSE_MS;
    this.#wakeSoon();
  }
}

const least = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
