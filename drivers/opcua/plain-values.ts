import { ReadingColumns } from "../../src/model/reading-columns.ts";
import type { DataType, ScalarType } from "../../src/model/value.ts";
import type { Point } from "../driver.ts";
import type { OpcuaAddress } from "./address.ts";
import type { BinaryReader, RawValue } from "./binary.ts";
import { BOOLEAN, scalarOfBuiltIn } from "./built-in.ts";
import { typeOfBuiltIn } from "./values.ts";

/** The values of a Read, good numbers in columns. */
export interface PlainAnswer {
  /** How many values the server gave. */
  readonly count: number;
  readonly columns: ReadingColumns;
  /** By place, what is no good number of its variable's type; empty: there is none. */
  readonly values: readonly (RawValue | undefined)[];
}

/** By built-in type 1: a value of it is what the variable has, as it came. */
type Accepted = Uint8Array;

const NOTHING: Accepted = new Uint8Array(64);
const LAST = 25;
const acceptedBy = new Map<ScalarType | "auto", Accepted>();

function acceptedOf({ scalar, count }: DataType): Accepted {
  if (count !== undefined && scalar !== "auto") return NOTHING;
  const known = acceptedBy.get(scalar);
  if (known) return known;
  const accepted = new Uint8Array(64);
  for (let type = 1; type <= LAST; type++) accepted[type] = scalar === "auto" || scalarOfBuiltIn(type) === scalar ? 1 : 0;
  acceptedBy.set(scalar, accepted);
  return accepted;
}

/** Takes the values of a Read apart for variables that are whole values: most are good numbers, which need no object. Made once for a request. */
export class PlainValues {
  readonly #accepted: readonly Accepted[];
  readonly #isAuto: readonly boolean[];

  constructor(points: readonly Point<OpcuaAddress>[]) {
    this.#accepted = points.map(({ type }) => acceptedOf(type));
    this.#isAuto = points.map(({ type }) => type.scalar === "auto");
  }

  /** The array of results of a ReadResponse. Throws RangeError for bytes that are none. */
  take(reader: BinaryReader): PlainAnswer {
    const columns = new ReadingColumns(this.#accepted.length);
    const { numbers, times } = columns;
    const accepted = this.#accepted;
    const values: (RawValue | undefined)[] = [];
    const count = Math.max(0, reader.elements());
    for (let i = 0; i < count; i++) {
      const type = reader.plainNumber(accepted[i] ?? NOTHING, numbers, times, i);
      if (type === 0) values[i] = reader.dataValue();
      else columns.number(i, type === BOOLEAN, this.#isAuto[i] ? typeOfBuiltIn(type) : undefined);
    }
    return { count, columns, values };
  }
}
