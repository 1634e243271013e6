import type { Member } from "./simulator-program.ts";

/** An element of an array. */
export interface Place {
  /** In paths: from 0 on, the innermost dimension fastest. */
  readonly index: number;
  /** As they are declared, the outermost first. */
  readonly indices: readonly number[];
  /** Counts elements row by row. */
  readonly element: number;
}

/** Type lists say of packed bits that they are this type. */
const PACKED_BIT = 40;

const lengthsOf = ({ field }: Member): readonly number[] => (field.bounds ?? []).map(([low, high]) => high - low + 1);

/** Indices from one row to the next: rows of packed bits in several dimensions begin with a byte. */
function rowOf(member: Member): number {
  const lengths = lengthsOf(member);
  const length = lengths.at(-1) ?? 1;
  return member.elementary?.soft === PACKED_BIT && lengths.length > 1 ? (length + 7) & ~7 : length;
}

/** Undefined: the array has no such element. */
export function placeOf(member: Member, index: number): Place | undefined {
  const bounds = member.field.bounds ?? [];
  const lengths = lengthsOf(member);
  const rowLength = rowOf(member);
  const inRow = index % rowLength;
  const indices = [inRow + (bounds.at(-1)?.[0] ?? 0)];
  let row = Math.floor(index / rowLength);
  let [element, step] = [inRow, lengths.at(-1) ?? 1];
  if (inRow >= step) return undefined;
  for (let i = bounds.length - 2; i >= 0; i--) {
    const length = lengths[i] ?? 1;
    indices.unshift((row % length) + (bounds[i]?.[0] ?? 0));
    element += (row % length) * step;
    row = Math.floor(row / length);
    step *= length;
  }
  return row === 0 ? { index, indices, element } : undefined;
}

/** All elements, in the order of their indices in paths. */
export function* placesOf(member: Member): Generator<Place> {
  const rows = lengthsOf(member)
    .slice(0, -1)
    .reduce((product, length) => product * length, 1);
  const end = rows * rowOf(member);
  for (let index = 0; index < end; index++) {
    const place = placeOf(member, index);
    if (place) yield place;
  }
}
