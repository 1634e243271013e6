import type { StoredBatch } from "../buffer/buffer.ts";
import type { Layout } from "../model/layout.ts";
import type { Refusal, SinkBatch, WriteResult } from "../sinks/sink.ts";
import { type Decoded, decodeJob, type Names } from "./decode.ts";
import type { DeliveryQueue, Job } from "./delivery-queue.ts";
import { type Expired, type HeldPart, Holds } from "./holds.ts";
import type { Opening } from "./opening.ts";
import { halvesOf, intersection, piecesOfRefusals, placesOf, valuesIn } from "./pieces.ts";
import { RowAccounts } from "./row-accounts.ts";
import { type Piece, type Suspect, Suspects } from "./suspects.ts";

export interface IsolationOptions {
  readonly queue: Pick<DeliveryQueue, "hold" | "settle" | "isHeld" | "readHeld" | "settleHeld">;
  readonly takesExploration: boolean;
  /** Layout by its id in the file; undefined: the file does not have it. Throws if the file cannot be read. */
  readonly layout: (id: number) => Layout | undefined;
  readonly names: Names;
  /** These rows are about to be sent. */
  readonly sending: (rows: readonly StoredBatch[]) => readonly StoredBatch[];
  /** This many values are dropped: the server failed on them alone while others passed, or those of `source` were held for long enough. */
  readonly dropped: (values: number, detail: string, source?: string) => void;
  /** The server takes all of a source again of which what was refused had not been held any more. */
  readonly recovered: (source: string) => void;
  /** The server has refused values for now: they are held. */
  readonly held: (detail: string) => void;
}

/** One suspect as it is written. */
interface Attempt {
  readonly suspect: Suspect;
  /** Those of its pieces that the file still has. */
  readonly pieces: readonly Piece[];
  readonly batch: SinkBatch;
  readonly rows: readonly StoredBatch[];
  readonly rowOf: (readout: number) => number | undefined;
  /** By row: the places of its values. */
  readonly places: ReadonlyMap<number, readonly number[]>;
  /** What it is, for people. */
  readonly name: string;
}

/** A row's time may be any number. */
const timeText = (epochMs: number): string => (Math.abs(epochMs) <= 8.64e15 ? new Date(epochMs).toISOString() : String(epochMs));

/** Isolates poison batches: holds the rows of suspects, writes the suspects alone, and keeps account of their values. */
export class Isolation {
  readonly suspects = new Suspects();
  readonly #options: IsolationOptions;
  readonly #accounts: RowAccounts;
  readonly #underWay = new Map<Suspect, Attempt>();
  readonly #holds = new Holds();
  /** Of what is held: by source. */
  readonly #heldUnderWay = new Map<string, Attempt>();
  /** The last failure, with its values, in words. */
  why: string | undefined;

  constructor(options: IsolationOptions) {
    this.#options = options;
    this.#accounts = new RowAccounts((row, outcome) => options.queue.settleHeld(row, outcome));
  }

  /** Suspects and held values under way. */
  underWay(): number {
    return this.#underWay.size + this.#heldUnderWay.size;
  }

  /** Why values are kept; undefined: none are. */
  keeping(): string | undefined {
    if (this.suspects.size > 0) return this.why;
    const detail = this.#holds.detail();
    return detail === undefined || !this.#holds.isFull() ? detail : `${detail}; so much is held that everything else waits`;
  }

  /** So much is held that nothing else is to be written. */
  isFull(): boolean {
    return this.#holds.isFull();
  }

  /** When held values may be due. */
  nextHeldMs(): number | undefined {
    return this.#holds.nextDueMs();
  }

  /** A suspect is under way that must be the only write. */
  isQuiet(): boolean {
    return [...this.#underWay.keys()].some(({ needsQuiet }) => needsQuiet);
  }

  /** Holds a job that was under way at losses, so that others pass. */
  hold(job: Job): void {
    const { queue, takesExploration } = this.#options;
    queue.hold(job);
    const rows = job.group.rows.filter(({ id }) => queue.isHeld(id));
    if (rows.length === 0) return;
    for (const { id, count, explorationCount } of rows) this.#accounts.open(id, count + (takesExploration ? explorationCount : 0));
    this.suspects.addJob({ ...job, group: { ...job.group, rows } });
  }

  /** Settles a normal job of which messages were refused: their rows are held, the others are done. Returns how many values it dropped. */
  settle(job: Job, batch: SinkBatch, { rowsRead, outcomes }: Decoded, refusals: readonly Refusal[], nowMs: number): number {
    const { queue, takesExploration } = this.#options;
    const { layout, rows } = job.group;
    const rowOf = (readout: number): number | undefined => rows[rowsRead[readout] ?? -1]?.id;
    const sorted = sortedRefusals(refusals, rowOf, batch.layout.variables.length);
    const lists = [...sorted.plain, ...(sorted.held ? [sorted.held.pieces] : [])];
    const places = placesOf(batch, rowOf, takesExploration);
    const refusedRows = new Set(lists.flat().map(({ row }) => row));
    queue.settle(
      job,
      outcomes.map((outcome, i) => (refusedRows.has(rows[i]?.id ?? 0) ? undefined : outcome)),
    );
    const taken =
      outcomes.reduce((sum, { delivered }) => sum + delivered, 0) - lists.reduce((sum, list) => sum + valuesIn(list, places), 0);
    if (taken > 0) this.suspects.passed(job);
    if (sorted.plain.length > 0) this.why = refusals.find(({ hold }) => !hold)?.detail;
    let dropped = 0;
    if (sorted.held) this.#refusedForNow(sorted.held.refusal.detail);
    const outcomeOfRow = new Map(rows.map(({ id }, i) => [id, outcomes[i]]));
    for (const list of lists) {
      const pieces = list.filter(({ row }) => queue.isHeld(row));
      if (pieces.length === 0) continue;
      this.#accounts.openPieces(pieces, (row) => outcomeOfRow.get(row));
      if (!sorted.held || list !== sorted.held.pieces) this.suspects.addRefused({ layout, backlog: job.backlog, pieces });
      else dropped += this.#keep(batch.layout.source.uuid, heldPart(layout, pieces, places), sorted.held.refusal, nowMs);
    }
    return dropped;
  }

  /** What is refused of the source is not held any more: it is to be tried, whatever the sink expects. */
  isHoldOver(source: string, nowMs: number): boolean {
    return this.#holds.isOver(source, nowMs);
  }

  /** Values of a source arrived that were not held, and none of them was refused. */
  passed(source: string, nowMs: number): void {
    const wasOver = this.#holds.isOver(source, nowMs);
    this.#holds.passed(source, nowMs);
    if (wasOver) this.#options.recovered(source);
  }

  /** Gives up what was held for long enough. */
  expire(nowMs: number): void {
    for (const expired of this.#holds.expire(nowMs)) {
      const values = this.#giveUp(expired);
      if (values > 0)
        this.#options.dropped(values, `${expired.detail}; the time for which they are held (hold_refused) is over`, expired.source);
    }
  }

  /** Tries some of what is held, if it is due: the write, until it has ended. Throws if the file cannot be read. */
  tryHeld(opening: Opening, nowMs: number, maxMessageBytes: number | undefined): Promise<void> | undefined {
    const taken = this.#holds.take(nowMs);
    if (!taken) return undefined;
    const { source, parts } = taken;
    const [{ layout }] = parts;
    const pieces = parts.flatMap((part) => part.pieces).sort((a, b) => a.row - b.row || a.from - b.from);
    let attempt: Attempt | undefined;
    try {
      attempt = this.#prepare({ layout, backlog: true, pieces, maxMessageBytes: undefined, needsQuiet: false }, maxMessageBytes);
    } catch (error) {
      this.#holds.giveBack(source, nowMs);
      throw error;
    }
    if (!attempt) {
      this.#holds.tried(source, undefined, false, nowMs);
      return Promise.resolve();
    }
    this.#heldUnderWay.set(source, attempt);
    this.#options.sending(attempt.rows);
    return this.#writeHeld(source, layout, attempt, opening);
  }

  /** The rows come again from a file of which nothing is known. */
  clear(): void {
    this.suspects.clear();
    this.#accounts.clear();
    this.#underWay.clear();
    this.#holds.clear();
    this.#heldUnderWay.clear();
  }

  /** Writes one suspect. Throws if the file cannot be read; what the sink throws is the loss of the opening. */
  async attempt(suspect: Suspect, opening: Opening, maxMessageBytes: number | undefined): Promise<void> {
    const attempt = this.#prepare(suspect, maxMessageBytes);
    if (!attempt) return;
    this.suspects.begin(suspect);
    this.#underWay.set(suspect, attempt);
    this.#options.sending(attempt.rows);
    let result: WriteResult;
    try {
      result = await opening.sink.write(attempt.batch, opening.ctx);
    } catch (error) {
      opening.lose(error);
      return;
    }
    // Gone: the file was left meanwhile.
    if (this.#underWay.delete(suspect)) this.#settle(attempt, result);
  }

  /** The sink was lost, with these normal jobs and the suspects under way. */
  lost(jobs: readonly Job[], why: string): void {
    const attempts = [...this.#underWay.values()];
    this.#underWay.clear();
    const wasHeldTried = this.#heldUnderWay.size > 0;
    this.#giveBackHeld();
    const [first] = attempts;
    if (first && attempts.length === 1 && jobs.length === 0 && !wasHeldTried) this.#failed(first, true, why);
    else
      this.suspects.lostTogether(
        jobs,
        attempts.map(({ suspect }) => suspect),
      );
  }

  /** The suspects under way are tried again: their failure had another cause. */
  release(): void {
    for (const suspect of this.#underWay.keys()) this.suspects.postpone(suspect);
    this.#underWay.clear();
    this.#giveBackHeld();
  }

  #giveBackHeld(): void {
    for (const source of this.#heldUnderWay.keys()) this.#holds.giveBack(source, performance.now());
    this.#heldUnderWay.clear();
  }

  async #writeHeld(source: string, layout: number, attempt: Attempt, opening: Opening): Promise<void> {
    let result: WriteResult;
    try {
      result = await opening.sink.write(attempt.batch, opening.ctx);
    } catch (error) {
      opening.lose(error);
      return;
    }
    // Gone: the file was left meanwhile, or the sink was lost.
    if (this.#heldUnderWay.get(source) !== attempt) return;
    this.#heldUnderWay.delete(source);
    this.#settleHeld(source, layout, attempt, result);
  }

  #settleHeld(
    source: string,
    layout: number,
    { pieces, batch, rowOf, places }: Attempt,
    { refused, detail, refusals = [] }: WriteResult,
  ): void {
    const sorted = sortedRefusals(refusals, rowOf, batch.layout.variables.length);
    const plain = sorted.plain.map((list) => intersection(list, pieces)).filter((list) => list.length > 0);
    const rest = sorted.held ? intersection(sorted.held.pieces, pieces) : [];
    const left = [...plain, rest].reduce((sum, list) => sum + valuesIn(list, places), 0) + refused;
    const hasPassed = left < valuesIn(pieces, places);
    if (refused > 0) this.#accounts.spread(pieces, places, refused);
    if (refused > 0 && detail !== undefined) this.#options.dropped(refused, detail);
    if (hasPassed) this.suspects.passed();
    if (sorted.held) this.#refusedForNow(sorted.held.refusal.detail);
    if (plain.length > 0) this.why = refusals.find(({ hold }) => !hold)?.detail;
    this.#accounts.add([...plain.flat(), ...rest]);
    for (const list of plain) this.suspects.addRefused({ layout, backlog: true, pieces: list });
    const nowMs = performance.now();
    const hasRecovered = hasPassed && left === 0 && this.#holds.isOver(source, nowMs);
    this.#holds.tried(source, rest.length > 0 ? heldPart(layout, rest, places) : undefined, hasPassed, nowMs, sorted.held?.refusal.detail);
    if (hasRecovered) this.#options.recovered(source);
    this.#accounts.end(pieces);
  }

  /** The server may close the connection because of it, as because of any refusal. */
  #refusedForNow(detail: string): void {
    this.suspects.refusals++;
    this.#options.held(detail);
  }

  /** Holds a part, of which the accounts know; returns how many values are dropped instead, because its time is over. */
  #keep(source: string, part: HeldPart, { detail, hold }: HeldRefusal, nowMs: number): number {
    if (this.#holds.add(source, part, hold, detail, nowMs)) return 0;
    return this.#giveUp({ source, parts: [part], next: hold.next, detail });
  }

  /** Returns how many values it drops. */
  #giveUp({ parts, next, detail }: Expired): number {
    let dropped = 0;
    for (const { layout, pieces, values } of parts)
      if (next === "isolate") {
        this.why = detail;
        this.suspects.addRefused({ layout, backlog: true, pieces });
      } else {
        for (const [row, count] of values) {
          this.#accounts.refuse(row, count);
          dropped += count;
        }
        this.#accounts.end(pieces);
      }
    return dropped;
  }

  /** Undefined: nothing of it is left to write. */
  #prepare(suspect: Suspect, maxMessageBytes: number | undefined): Attempt | undefined {
    const { queue, takesExploration } = this.#options;
    const rows: StoredBatch[] = [];
    for (const id of new Set(suspect.pieces.map(({ row }) => row))) {
      const row = queue.readHeld(id);
      if (row) rows.push(row);
      else this.#accounts.forget(id);
    }
    const ids = new Set(rows.map(({ id }) => id));
    const pieces = suspect.pieces.filter(({ row }) => ids.has(row));
    const isWhole = pieces.every(({ from, to }) => from === 0 && to === undefined);
    const group = { layout: suspect.layout, rows, bytes: 0 };
    const layout = this.#options.layout(suspect.layout);
    const decoded = decodeJob(
      { group, backlog: suspect.backlog },
      layout,
      takesExploration,
      this.#options.names,
      isWhole ? undefined : pieces,
    );
    const rowOf = (readout: number): number | undefined => rows[decoded.rowsRead[readout] ?? -1]?.id;
    const places = decoded.batch ? placesOf(decoded.batch, rowOf, takesExploration) : new Map<number, number[]>();
    for (const [i, { id }] of rows.entries()) if (decoded.outcomes[i]?.dropped.damaged !== undefined) this.#accounts.damaged(id);
    const values = valuesIn(pieces, places);
    if (!decoded.batch || values === 0) {
      this.suspects.remove(suspect);
      this.#accounts.end(pieces);
      return undefined;
    }
    const name = `${values} ${values === 1 ? "value" : "values"} of ${decoded.batch.layout.source.name} of ${timeText(rows[0]?.time ?? 0)}`;
    const batch = { ...decoded.batch, isRetry: true, ...(maxMessageBytes !== undefined && { maxMessageBytes }) };
    return { suspect, pieces, batch, rows, rowOf, places, name };
  }

  #settle(attempt: Attempt, { refused, detail, refusals = [] }: WriteResult): void {
    const { suspect, pieces, batch, rowOf, places } = attempt;
    const lists = piecesOfRefusals(refusals, rowOf, batch.layout.variables.length).map((list) => intersection(list, pieces));
    const rest = lists.filter((list) => list.length > 0);
    const restValues = rest.reduce((sum, list) => sum + valuesIn(list, places), 0);
    if (refused > 0 && detail !== undefined) this.#options.dropped(refused, detail);
    if (refused > 0) {
      this.suspects.refusals++;
      this.#accounts.spread(pieces, places, refused);
    }
    if (restValues === 0) {
      this.suspects.arrived(suspect, performance.now());
      this.#accounts.end(pieces);
    } else if (restValues + refused < valuesIn(pieces, places)) {
      this.suspects.narrowed(suspect, rest);
      this.#accounts.add(rest.flat());
      this.#accounts.end(pieces);
    } else this.#failed(attempt, false, refusals[0]?.detail ?? "");
  }

  #failed({ suspect, pieces, places, name }: Attempt, isLoss: boolean, why: string): void {
    this.why = `${why}, with nothing but ${name}`;
    const halves = halvesOf(pieces, places);
    const verdict = this.suspects.failed(suspect, halves, isLoss, performance.now());
    switch (verdict.type) {
      case "kept":
        return;
      case "split":
        this.#accounts.add(halves?.flat() ?? []);
        this.#accounts.end(pieces);
        return;
      case "dropped": {
        const values = valuesIn(pieces, places);
        this.#accounts.spread(pieces, places, values);
        this.#accounts.end(pieces);
        this.#options.dropped(
          values,
          `${why}, ${verdict.failures} times with nothing but ${name}, while others passed: ${values === 1 ? "it is" : "they are"} dropped`,
        );
        return;
      }
    }
  }
}

type HeldRefusal = Refusal & { readonly hold: NonNullable<Refusal["hold"]> };

/** The pieces of refused messages, apart, and those of all that is to be held, together. */
function sortedRefusals(
  refusals: readonly Refusal[],
  rowOf: (readout: number) => number | undefined,
  width: number,
): {
  readonly plain: readonly (readonly Piece[])[];
  readonly held: { readonly pieces: readonly Piece[]; readonly refusal: HeldRefusal } | undefined;
} {
  const isHeld = (refusal: Refusal): refusal is HeldRefusal => refusal.hold !== undefined;
  const held = refusals.filter(isHeld);
  const plain = piecesOfRefusals(
    refusals.filter((refusal) => !isHeld(refusal)),
    rowOf,
    width,
  );
  const [refusal] = held;
  if (!refusal) return { plain, held: undefined };
  const [pieces = []] = piecesOfRefusals([{ parts: held.flatMap(({ parts }) => parts), detail: refusal.detail }], rowOf, width);
  return { plain, held: pieces.length > 0 ? { pieces, refusal } : undefined };
}

const heldPart = (layout: number, pieces: readonly Piece[], places: ReadonlyMap<number, readonly number[]>): HeldPart => {
  const values = new Map<number, number>();
  for (const piece of pieces) values.set(piece.row, (values.get(piece.row) ?? 0) + valuesIn([piece], places));
  return { layout, pieces, values };
};
