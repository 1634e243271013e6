import type { Steps } from "../../../src/base/timer.ts";
import type { Point, Request } from "../../driver.ts";
import { groupTextSteps } from "../../lib/group.ts";
import { sortSteps } from "../../lib/sort.ts";
import { groupSpansSteps } from "../../lib/spans.ts";
import type { FileAddress } from "./address.ts";
import { type FileDecoder, fileDecoder } from "./decode.ts";
import { isInputOrOutput } from "./files.ts";
import type { FilePlace } from "./place.ts";

/** Neighbours in one file, or in one slot of inputs or outputs. */
export interface FileItem extends Pick<FilePlace, "family" | "kind" | "file" | "slot" | "start" | "count"> {
  readonly bytes: number;
  /** Data bytes that one answer may have: a longer value is read in pieces. */
  readonly mostBytes: number;
  /** In words: `N7:0..9`. */
  readonly name: string;
}

/** One request. `decoders[i]` and `offsets[i]` belong to `points[i]`. */
export interface FileRead extends Request<FileAddress> {
  readonly item: FileItem;
  readonly decoders: readonly FileDecoder[];
  readonly offsets: Int32Array;
}

/** Data bytes of one answer, and points of one request. */
export interface FileLimits {
  readonly fileBytes: number;
  readonly maxPoints: number;
}

/** Elements of each file in as few requests as the size allows: what lies between two of them is read with them. In steps. Pure. */
export function* planFileSteps(
  points: readonly Point<FileAddress>[],
  { fileBytes, maxPoints }: FileLimits,
  apart?: ReadonlySet<Point>,
): Steps<FileRead[]> {
  const ordered = yield* sortSteps(points, (one, other) => one.index - other.index);
  const reads: FileRead[] = [];
  for (const together of yield* groupTextSteps(ordered, keyOf)) {
    const bytes = together[0] ? placeIn(together[0]).kind.bytes : 1;
    const length = Math.max(1, Math.floor(fileBytes / bytes));
    const limits = { length, gap: length, count: maxPoints };
    for (const { start, length: count, items } of yield* groupSpansSteps(together, spanOf, limits, apart))
      reads.push(readOf(items, start, count, fileBytes));
  }
  return reads;
}

function placeIn({ address }: Point<FileAddress>): FilePlace {
  if (!address.place) throw new TypeError(`${address.letter}${address.file}:${address.element} was not looked up before it was planned`);
  return address.place;
}

const keyOf = (point: Point<FileAddress>): string => {
  const { kind, file, slot } = placeIn(point);
  return `${kind.letter}${file}:${slot}`;
};

const spanOf = (point: Point<FileAddress>) => {
  const { start, count } = placeIn(point);
  return { start, length: count };
};

function readOf(points: readonly Point<FileAddress>[], start: number, count: number, mostBytes: number): FileRead {
  const [first] = points;
  if (!first) throw new TypeError("a request without points");
  const { family, kind, file, slot } = placeIn(first);
  const item = { family, kind, file, start, count, bytes: count * kind.bytes, mostBytes, ...(slot !== undefined && { slot }) };
  return {
    points,
    item: { ...item, name: nameOf(item) },
    decoders: points.map((point) => fileDecoder(point.address, point.type, placeIn(point))),
    offsets: Int32Array.from(points, (point) => (placeIn(point).start - start) * kind.bytes),
  };
}

/** `N7:0..9`, `I:1.0..2`, and of a PLC-5 `I:012..017`. */
export function nameOf({ family, kind: { letter }, file, slot, start, count }: Omit<FileItem, "bytes" | "mostBytes" | "name">): string {
  const isOctal = family === "plc5" && isInputOrOutput(letter);
  const number = (at: number): string => (isOctal ? at.toString(8).padStart(3, "0") : String(at));
  const prefix = isInputOrOutput(letter) ? letter : `${letter}${file}`;
  const where = slot === undefined ? `${prefix}:` : `${prefix}:${slot}.`;
  return `${where}${number(start)}${count === 1 ? "" : `..${number(start + count - 1)}`}`;
}
