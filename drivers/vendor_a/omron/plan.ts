import type { Steps } from "../../../src/base/timer.ts";
import type { Point, Request } from "../../driver.ts";
import { groupTextSteps } from "../../lib/group.ts";
import { sortSteps } from "../../lib/sort.ts";
import type { CipAddress } from "../address.ts";
import { REPLY_HEADER_BYTES, readRequest, tagPath } from "../cip.ts";
import type { Decoder } from "../elements.ts";
import type { CipLimits } from "../plan.ts";
import type { AnyRead } from "../variants.ts";
import { dataBytes, decoderOf, elementBytes, type Form } from "./decode.ts";
import { indicesAt, type VariablePlace } from "./locate.ts";
import { isStructureCode, type Shape, STRING } from "./types.ts";

/** A variable, a member, an array or elements of one that are read at once. */
export interface VariableItem {
  /** In words. */
  readonly name: string;
  /** Without the indices of the first element. */
  readonly path: readonly (string | number)[];
  readonly shape: Shape;
  readonly form: Form;
  /** Undefined: no array, or all of it. */
  readonly start: number | undefined;
  readonly elements: number;
  /** Length of the data in an answer, behind the type; 0: the answer says it. */
  readonly bytes: number;
  /** Read Tag. */
  readonly request: Buffer;
  /** Each element is read by a request of its own: an array of texts or of structures. */
  readonly isOneByOne: boolean;
}

/** One request; `decoders[i]` and `offsets[i]` belong to `points[i]`. */
export interface VariableRead extends Request<CipAddress> {
  readonly variable: VariableItem;
  readonly decoders: readonly Decoder[];
  readonly offsets: Int32Array;
}

export const isVariableRead = (request: AnyRead): request is VariableRead => "variable" in request;

/** Type code, length of what follows it, and the CRC of a structure. */
const VALUE_HEAD_BYTES = 4;
/** Elements of an array are read together where what lies between them is not longer: another request takes much more. */
const MOST_GAP_BYTES = 128;
/** Points in one step. */
const AT_ONCE = 250;

/** Data that one answer can bring. */
export const answerRoom = (messageBytes: number): number => messageBytes - REPLY_HEADER_BYTES - VALUE_HEAD_BYTES;

interface Entry {
  readonly point: Point<CipAddress>;
  readonly place: VariablePlace;
}

/**
 * A request for each variable, whole array or structure, because these controllers are not known to take several in one; neighbours in an array
 * are read as one. Throws TypeError: a point was not looked up. Pure.
 */
export function* planVariables(points: readonly Point<CipAddress>[], limits: CipLimits, apart?: ReadonlySet<Point>): Steps<VariableRead[]> {
  const room = Math.min(answerRoom(limits.messageBytes), limits.maxBytes);
  const reads: VariableRead[] = [];
  const entries = (yield* sortSteps(points, (a, b) => a.index - b.index)).map((point): Entry => ({ point, place: placeOf(point) }));
  let work = 0;
  for (const group of yield* groupTextSteps(entries, keyOf)) {
    work += group.length;
    if (work >= AT_ONCE) {
      work = 0;
      yield;
    }
    const isRow = group[0] !== undefined && isRowPart(group[0].place);
    const runs = isRow ? yield* rowRuns(group, room, limits.maxPoints, apart) : equalRuns(group, limits.maxPoints, apart);
    for (const run of runs) reads.push(readOf(run));
  }
  return reads;
}

function placeOf({ address: { variable, steps } }: Point<CipAddress>): VariablePlace {
  if (!variable) throw new TypeError(`${steps.join(".")} was not looked up before it was planned`);
  return variable;
}

const isText = ({ code }: Shape): boolean => code === STRING;
/** Texts and structures have no place of their own in a row: W506 swaps the bytes of texts there, and says nothing of structures. */
const hasRows = (shape: Shape): boolean => !isText(shape) && !isStructureCode(shape.code);

/** True: elements of an array that may be read together with others. */
const isRowPart = ({ shape, start }: VariablePlace): boolean => start !== undefined && hasRows(shape);
const isOneByOne = ({ shape, count }: VariablePlace): boolean => count !== undefined && !hasRows(shape);

/** Equal for points that one request may read. */
function keyOf({ point, place }: Entry): string {
  const { name, shape, start, count } = place;
  if (isRowPart(place)) return `${name}[]${shape.code}`;
  if (isOneByOne(place)) return `${name}#${point.index}`;
  return `${name}#${shape.code} ${start} ${count}`;
}

/** Points that the same answer gives. */
function equalRuns(group: readonly Entry[], maxPoints: number, apart: ReadonlySet<Point> | undefined): Entry[][] {
  const runs: Entry[][] = [];
  for (const entry of group) {
    const last = runs.at(-1);
    if (last && last.length < maxPoints && !apart?.has(entry.point)) last.push(entry);
    else runs.push([entry]);
  }
  return runs;
}

const startOf = ({ place: { start = 0 } }: Entry): number => start;
const endOf = (entry: Entry): number => startOf(entry) + (entry.place.count ?? 1);

// Points on one span keep the order of the layout, so that the plan does not depend on the order they come in.
const byPlace = (a: Entry, b: Entry): number => startOf(a) - startOf(b) || endOf(a) - endOf(b) || a.point.index - b.point.index;

function* rowRuns(group: readonly Entry[], room: number, maxPoints: number, apart: ReadonlySet<Point> | undefined): Steps<Entry[][]> {
  const runs: Entry[][] = [];
  let [start, end] = [0, 0];
  for (const [i, entry] of (yield* sortSteps(group, byPlace)).entries()) {
    if (i > 0 && i % AT_ONCE === 0) yield;
    const bytes = elementBytes(entry.place.shape, "row");
    const held = runs.at(-1);
    const joinedEnd = Math.max(end, endOf(entry));
    const isJoined =
      held !== undefined &&
      held.length < maxPoints &&
      !apart?.has(entry.point) &&
      (startOf(entry) - end) * bytes <= MOST_GAP_BYTES &&
      ((joinedEnd - start) * bytes <= room || joinedEnd === end);
    if (isJoined) {
      held.push(entry);
      end = joinedEnd;
    } else {
      runs.push([entry]);
      [start, end] = [startOf(entry), endOf(entry)];
    }
  }
  return runs;
}

function readOf(entries: readonly Entry[]): VariableRead {
  const [first] = entries;
  if (!first) throw new TypeError("a run without points");
  const item = itemOf(first.place, entries);
  return {
    points: entries.map(({ point }) => point),
    variable: item,
    decoders: entries.map(({ point, place }) => decoderOf(item.isOneByOne ? oneOf(place) : place, item.form, point.address)),
    offsets: Int32Array.from(entries, (entry) =>
      item.form === "row" ? (startOf(entry) - startOf(first)) * elementBytes(item.shape, "row") : 0,
    ),
  };
}

/** A value of those that are read one by one. */
const oneOf = (place: VariablePlace): VariablePlace => ({ ...place, count: undefined });

function itemOf(place: VariablePlace, entries: readonly Entry[]): VariableItem {
  const { path, name, shape, start } = place;
  const known = { path, shape, start };
  if (!isRowPart(place)) {
    const elements = place.count ?? 1;
    const oneByOne = isOneByOne(place);
    const form: Form = place.count === undefined || oneByOne ? "one" : "whole";
    return {
      ...known,
      name: nameOf(name, shape, start, place.count),
      form,
      elements,
      bytes: oneByOne ? elements * shape.bytes : dataBytes(shape, form, elements),
      request: elementsRequest(known, start, 1),
      isOneByOne: oneByOne,
    };
  }
  const elements = entries.reduce((last, entry) => Math.max(last, endOf(entry)), 0) - (start ?? 0);
  const form: Form = elements === 1 ? "one" : "row";
  return {
    ...known,
    name: nameOf(name, shape, start, elements === 1 ? undefined : elements),
    form,
    elements,
    bytes: dataBytes(shape, form, elements),
    request: elementsRequest(known, start, elements),
    isOneByOne: false,
  };
}

/** Path with the indices of an element, as the program declares them. */
export const pathTo = ({ path, shape }: Pick<VariableItem, "path" | "shape">, start: number | undefined): readonly (string | number)[] =>
  start === undefined ? path : [...path, ...indicesAt(start, shape)];

/** Read Tag of so many elements; 1 for anything that is not a row. */
export const elementsRequest = (item: Pick<VariableItem, "path" | "shape">, start: number | undefined, count: number): Buffer =>
  readRequest(tagPath(pathTo(item, start)), count);

/** `Line.Speeds[3..7]`; of a matrix `M[1,2] and 4 more elements`. */
function nameOf(name: string, shape: Shape, start: number | undefined, count: number | undefined): string {
  if (start === undefined) return name;
  const indices = indicesAt(start, shape);
  if (count === undefined || count === 1) return `${name}[${indices.join(",")}]`;
  if (indices.length === 1) return `${name}[${indices[0]}..${(indices[0] ?? 0) + count - 1}]`;
  return `${name}[${indices.join(",")}] and ${count - 1} more elements`;
}
