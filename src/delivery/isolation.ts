import type { StoredBatch } from "../buffer/buffer.ts";
import type { Layout } from "../model/layout.ts";
import type { Refusal, SinkBatch, WriteResult } from "../sinks/sink.ts";
import type { Outcome } from "./acknowledgements.ts";
import { type Decoded, decodeJob, type Names } from "./decode.ts";
import type { DeliveryQueue, Job } from "./delivery-queue.ts";
import type { Opening } from "./opening.ts";
import { halvesOf, intersection, piecesOfRefusals, placesOf, valuesIn } from "./pieces.ts";
import { type Piece, type Suspect, Suspects } from "./suspects.ts";

export interface IsolationOptions {
  readonly queue: Pick<DeliveryQueue, "hold" | "settle" | "isHeld" | "readHeld" | "settleHeld">;
  readonly takesExploration: boolean;
  /** Layout by its id in the file; undefined: the file does not have it. Throws if the file cannot be read. */
  readonly layout: (id: number) => Layout | undefined;
  readonly names: Names;
  /** These rows are about to be sent. */
  readonly sending: (rows: readonly StoredBatch[]) => void;
  /** So many values are dropped: the server failed on them alone while others passed. */
  readonly dropped: (values: number, detail: string) => void;
}

/** A held row, until each of its pieces has arrived or is dropped. Values, but for `pieces`. */
interface Account {
  readonly all: number;
  pieces: number;
  refused: number;
  isDamaged: boolean;
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
  /** By row. */
  readonly #accounts = new Map<number, Account>();
  readonly #underWay = new Map<Suspect, Attempt>();
  /** The last failure, with its values, in words. */
  why: string | undefined;

  constructor(options: IsolationOptions) {
    this.#options = options;
  }

  /** Suspects under way. */
  underWay(): number {
    return this.#underWay.size;
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
    for (const { id, count, explorationCount } of rows)
      this.#accounts.set(id, { all: count + (takesExploration ? explorationCount : 0), pieces: 1, refused: 0, isDamaged: false });
    this.suspects.addJob({ ...job, group: { ...job.group, rows } });
  }

  /** Settles a normal job of which messages were refused: their rows are held, the others are done. */
  settle(job: Job, batch: SinkBatch, { rowsRead, outcomes }: Decoded, refusals: readonly Refusal[]): void {
    const { queue, takesExploration } = this.#options;
    const { layout, rows } = job.group;
    const rowOf = (readout: number): number | undefined => rows[rowsRead[readout] ?? -1]?.id;
    const lists = piecesOfRefusals(refusals, rowOf, batch.layout.variables.length);
    const places = placesOf(batch, rowOf, takesExploration);
    const refusedRows = new Set(lists.flat().map(({ row }) => row));
    queue.settle(
      job,
      outcomes.map((outcome, i) => (refusedRows.has(rows[i]?.id ?? 0) ? undefined : outcome)),
    );
    const taken =
      outcomes.reduce((sum, { delivered }) => sum + delivered, 0) - lists.reduce((sum, list) => sum + valuesIn(list, places), 0);
    if (taken > 0) this.suspects.passed(job);
    this.why = refusals[0]?.detail;
    const outcomeOfRow = new Map(rows.map(({ id }, i) => [id, outcomes[i]]));
    for (const list of lists) {
      const pieces = list.filter(({ row }) => queue.isHeld(row));
      if (pieces.length === 0) continue;
      for (const { row } of pieces) {
        const account = this.#accounts.get(row) ?? accountOf(outcomeOfRow.get(row));
        account.pieces++;
        this.#accounts.set(row, account);
      }
      this.suspects.addRefused({ layout, backlog: job.backlog, pieces });
    }
  }

  /** The rows come again from a file of which nothing is known. */
  clear(): void {
    this.suspects.clear();
    this.#accounts.clear();
    this.#underWay.clear();
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
    const [first] = attempts;
    if (first && attempts.length === 1 && jobs.length === 0) this.#failed(first, true, why);
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
  }

  /** Undefined: nothing of it is left to write. */
  #prepare(suspect: Suspect, maxMessageBytes: number | undefined): Attempt | undefined {
    const { queue, takesExploration } = this.#options;
    const rows: StoredBatch[] = [];
    for (const id of new Set(suspect.pieces.map(({ row }) => row))) {
      const row = queue.readHeld(id);
      if (row) rows.push(row);
      else this.#forget(id);
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
    for (const [i, { id }] of rows.entries()) if (decoded.outcomes[i]?.dropped.damaged !== undefined) this.#damaged(id);
    const values = valuesIn(pieces, places);
    if (!decoded.batch || values === 0) {
      this.suspects.remove(suspect);
      for (const { row } of pieces) this.#change(row, -1);
      return undefined;
    }
    const name = `${values} ${values === 1 ? "value" : "values"} of ${decoded.batch.layout.source.name} of ${timeText(rows[0]?.time ?? 0)}`;
    const batch = { ...decoded.batch, ...(maxMessageBytes !== undefined && { maxMessageBytes }) };
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
      this.#spread(pieces, places, refused);
    }
    if (restValues === 0) {
      this.suspects.arrived(suspect, performance.now());
      for (const { row } of pieces) this.#change(row, -1);
    } else if (restValues + refused < valuesIn(pieces, places)) {
      this.suspects.narrowed(suspect, rest);
      for (const { row } of rest.flat()) this.#change(row, 1);
      for (const { row } of pieces) this.#change(row, -1);
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
        for (const { row } of halves?.flat() ?? []) this.#change(row, 1);
        for (const { row } of pieces) this.#change(row, -1);
        return;
      case "dropped": {
        const values = valuesIn(pieces, places);
        this.#spread(pieces, places, values);
        for (const { row } of pieces) this.#change(row, -1);
        this.#options.dropped(
          values,
          `${why}, ${verdict.failures} times with nothing but ${name}, while others passed: ${values === 1 ? "it is" : "they are"} dropped`,
        );
        return;
      }
    }
  }

  /** Books `refused` values to the rows of the pieces. */
  #spread(pieces: readonly Piece[], places: Attempt["places"], refused: number): void {
    let rest = refused;
    for (const piece of pieces) {
      const account = this.#accounts.get(piece.row);
      const taken = Math.min(rest, valuesIn([piece], places));
      if (account) account.refused += taken;
      rest -= taken;
    }
  }

  #damaged(row: number): void {
    const account = this.#accounts.get(row);
    if (account) account.isDamaged = true;
  }

  /** A row that was dropped from the file meanwhile is counted there. */
  #forget(row: number): void {
    this.#accounts.delete(row);
    this.#options.queue.settleHeld(row, undefined);
  }

  #change(row: number, pieces: 1 | -1): void {
    const account = this.#accounts.get(row);
    if (!account) return;
    account.pieces += pieces;
    if (account.pieces > 0) return;
    this.#accounts.delete(row);
    this.#options.queue.settleHeld(row, outcomeOf(account));
  }
}

function accountOf(outcome: Outcome | undefined): Account {
  const refused = outcome?.dropped.refused ?? 0;
  return { all: (outcome?.delivered ?? 0) + refused, pieces: 0, refused, isDamaged: false };
}

function outcomeOf({ all, refused, isDamaged }: Account): Outcome {
  if (isDamaged) return { delivered: 0, dropped: { damaged: all } };
  const dropped = Math.min(refused, all);
  return { delivered: all - dropped, dropped: dropped === 0 ? {} : { refused: dropped } };
}
