import type { StoredBatch } from "../../buffer/buffer.ts";
import type { Layout } from "../../model/layout.ts";
import type { Refusal, SinkBatch } from "../../sinks/sink.ts";
import { decodeJob, type Names } from "../decode.ts";
import type { SinkFilter } from "../sink-filter.ts";
import { counted, intersection, type Piece, type Places, piecesOfRefusals, placesOf } from "./pieces.ts";
import type { Attempt, Due } from "./state.ts";
import type { Refused } from "./step.ts";

export interface AttemptOptions {
  readonly takesExploration: boolean;
  readonly filter: SinkFilter;
  /** Layout by its id in the file; undefined: the file does not have it. Throws if the file cannot be read. */
  readonly layout: (id: number) => Layout | undefined;
  readonly names: Names;
}

export interface Prepared {
  readonly attempt: Attempt;
  /** Rows that have left the file, and rows that cannot be decoded. */
  readonly gone: readonly number[];
  readonly damaged: readonly number[];
  /** By row: values that the filter of the sink leaves out. */
  readonly filtered: ReadonlyMap<number, number>;
  readonly rows: readonly StoredBatch[];
  /** Undefined: nothing can be read. */
  readonly batch: SinkBatch | undefined;
  /** The row of a readout of the batch. */
  readonly rowOf: (readout: number) => number | undefined;
}

/** A row's time may be any number. */
const timeText = (epochMs: number): string => (Math.abs(epochMs) <= 8.64e15 ? new Date(epochMs).toISOString() : String(epochMs));

/** Makes what is due as the sink gets it. `read` gives a row as the file has it. Throws if the file cannot be read. */
export function prepare(
  due: Due,
  read: (row: number) => StoredBatch | undefined,
  { takesExploration, filter, layout, names }: AttemptOptions,
): Prepared {
  const ids = [...new Set(due.pieces.map(({ row }) => row))];
  const rows = ids.flatMap((id) => read(id) ?? []);
  const found = new Set(rows.map(({ id }) => id));
  const left = due.pieces.filter(({ row }) => found.has(row));
  const isWhole = left.every(({ from, to }) => from === 0 && to === undefined);
  const group = { layout: due.layout, rows, bytes: 0 };
  const decoded = decodeJob(
    { group, backlog: due.backlog },
    layout(due.layout),
    { takesExploration, filter, names },
    isWhole ? undefined : left,
  );
  const rowOf = (readout: number): number | undefined => rows[decoded.rowsRead[readout] ?? -1]?.id;
  const places: Places = decoded.batch ? placesOf(decoded.batch, rowOf, takesExploration) : new Map();
  const pieces = counted(left, places);
  const values = pieces.reduce((sum, piece) => sum + piece.values, 0);
  const name = `${values} ${values === 1 ? "value" : "values"} of ${decoded.batch?.layout.source.name} of ${timeText(rows[0]?.time ?? 0)}`;
  const { maxMessageBytes } = due;
  return {
    attempt: { due, pieces, places, name },
    gone: ids.filter((id) => !found.has(id)),
    damaged: rows.flatMap(({ id }, i) => (decoded.outcomes[i]?.dropped.damaged === undefined ? [] : [id])),
    filtered: new Map(rows.flatMap(({ id }, i) => (decoded.outcomes[i]?.filtered ? [[id, decoded.outcomes[i].filtered]] : []))),
    rows,
    batch: decoded.batch && { ...decoded.batch, isRetry: true, ...(maxMessageBytes !== undefined && { maxMessageBytes }) },
    rowOf,
  };
}

type HeldRefusal = Refusal & { readonly hold: NonNullable<Refusal["hold"]> };

/** The contents of refused messages, apart, and those of all that is to be held, together and last. `within`: the pieces that were written. */
export function refusedOf(
  refusals: readonly Refusal[],
  { layout }: SinkBatch,
  rowOf: (readout: number) => number | undefined,
  places: Places,
  within?: readonly Piece[],
): readonly Refused[] {
  const isHeld = (refusal: Refusal): refusal is HeldRefusal => refusal.hold !== undefined;
  const holding = refusals.filter(isHeld);
  const plain = refusals.filter((refusal) => !isHeld(refusal));
  const contents = (some: readonly Pick<Refusal, "parts">[]) =>
    piecesOfRefusals(some, rowOf, layout.variables.length).flatMap((list) => {
      const pieces = counted(within ? intersection(list, within) : list, places).filter(({ values }) => values > 0);
      return pieces.length > 0 ? [pieces] : [];
    });
  const [first] = holding;
  return [
    ...contents(plain).map((pieces) => ({ pieces, detail: plain[0]?.detail ?? "" })),
    ...(first ? contents([{ parts: holding.flatMap(({ parts }) => parts) }]).map((pieces) => ({ ...first, pieces })) : []),
  ];
}
