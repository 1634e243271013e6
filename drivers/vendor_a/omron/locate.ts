import { FaultError } from "../../../src/model/fault.ts";
import { areDimensionsOf, type DataType, formatDataType, MAX_COUNT, NUMBER_BYTES, type ScalarType } from "../../../src/model/value.ts";
import { CODINGS } from "../../lib/coded-numbers.ts";
import { quote } from "../../lib/text.ts";
import { type CipAddress, type Step, textOf } from "../address.ts";
import { bitsOf, ELEMENTARY, elementsOf, isLaidOut, isStructureCode, type Shape, STRING, shapeName, UNION, valuesIn } from "./types.ts";

/** The place where a point is in a controller, and as what it is read. Plain data. */
export interface VariablePlace {
  /** Variable and members with their indices, without those of an element at the end. */
  readonly path: readonly (string | number)[];
  /** Text of the path, for people. */
  readonly name: string;
  readonly shape: Shape;
  /** First element, row by row; undefined: no array, or all of it. */
  readonly start: number | undefined;
  /** Elements; undefined: one value. */
  readonly count: number | undefined;
  /** From the least significant one of a whole number. */
  readonly bit: number | undefined;
  readonly scalar: ScalarType;
  /** The variable has no type of its own: each reading brings it. */
  readonly isAuto: boolean;
}

interface Located {
  readonly place: VariablePlace;
  readonly type: DataType;
}

/** Limits of one point. */
const MAX_BYTES = 2 ** 20;
const MAX_VALUES = 200_000;
/** Texts and structures of an array are read one by one. */
const MAX_ONE_BY_ONE = 1000;
/** An element segment has 16 bits. */
export const MAX_INDEX = 0xffff;

/** A start for locating: a variable or an element by its path, and the steps from there. */
export interface Base {
  readonly path: readonly (string | number)[];
  readonly name: string;
  readonly shape: Shape;
  readonly steps: readonly Step[];
}

/** The members of a structure or a union are not known; the controller may know one by its name. */
export class UntoldMembers extends FaultError {}

/** The place of an address in what is known. Throws FaultError: `not_found`, `out_of_range`, `type_mismatch`. Pure. */
export function locateVariable(address: CipAddress, wanted: DataType, base: Base): Located {
  const text = textOf(address);
  const walk = new Walk(text, base);
  for (const step of base.steps) walk.take(step);
  return settle(address, wanted, walk, text);
}

/** Walks from a variable to what an address names in it. */
class Walk {
  readonly #text: string;
  path: readonly (string | number)[];
  name: string;
  shape: Shape;
  /** First element, where the address names one. */
  start: number | undefined;

  constructor(text: string, { path, name, shape }: Base) {
    this.#text = text;
    this.path = path;
    this.name = name;
    this.shape = shape;
  }

  take(step: Step): void {
    if (typeof step === "string") this.#enter(step);
    else this.#select(step);
  }

  #select(indices: readonly number[]): void {
    const { dimensions, firsts } = this.shape;
    if (dimensions.length === 0 || this.start !== undefined) throw mismatch(this.#text, `${this.name} is not an array`);
    if (dimensions.length !== indices.length)
      throw mismatch(this.#text, `${this.name} has ${dimensions.length} dimensions: ${boundsWords(this.shape)}`);
    let flat = 0;
    for (const [i, size] of dimensions.entries()) {
      const first = firsts[i] ?? 0;
      const index = indices[i] ?? 0;
      if (index < first || index >= first + size || index > MAX_INDEX)
        throw new FaultError("out_of_range", `${quote(this.#text)}: the elements of ${this.name} are ${boundsWords(this.shape)}`);
      flat = flat * size + index - first;
    }
    this.start = flat;
  }

  #enter(name: string): void {
    const { code, structure, dimensions } = this.shape;
    if (!isStructureCode(code) && code !== UNION)
      throw new FaultError("not_found", `${quote(this.#text)}: ${this.name} is ${shapeName(this.shape)} and has no member ${name}`);
    if (dimensions.length > 0 && this.start === undefined)
      throw mismatch(
        this.#text,
        `${this.name} is an array: name one element, for example ${this.name}[${this.shape.firsts.join(",")}].${name}`,
      );
    if (!structure) throw new UntoldMembers("not_found", `${quote(this.#text)}: the controller does not list the members of ${this.name}`);
    const wanted = name.toLowerCase();
    const member = structure.members.find((one) => one.name.toLowerCase() === wanted);
    if (!member) throw new FaultError("not_found", `${quote(this.#text)}: ${this.name} (${shapeName(this.shape)}) has no member ${name}`);
    const indices = this.start === undefined ? [] : indicesAt(this.start, this.shape);
    this.path = [...this.path, ...indices, member.name];
    this.name = `${this.name}${indices.length === 0 ? "" : `[${indices.join(",")}]`}.${member.name}`;
    this.shape = member.shape;
    this.start = undefined;
  }
}

/** The indices of an element as the program declares them, row by row. Pure. */
export function indicesAt(flat: number, { dimensions, firsts }: Pick<Shape, "dimensions" | "firsts">): number[] {
  const indices: number[] = [];
  let rest = flat;
  for (let i = dimensions.length - 1; i >= 0; i--) {
    const size = Math.max(1, dimensions[i] ?? 1);
    indices.unshift((rest % size) + (firsts[i] ?? 0));
    rest = Math.floor(rest / size);
  }
  return indices;
}

/** Decides the type and the number of elements. */
function settle({ bit, count: counted, coding }: CipAddress, wanted: DataType, walk: Walk, text: string): Located {
  const { shape } = walk;
  checkReadable(shape, text);
  const isArray = shape.dimensions.length > 0;
  const isAuto = wanted.scalar === "auto";
  const own = bit === undefined ? scalarOf(shape) : bitScalar(bit, walk, text);
  if (!isAuto && !fits(wanted.scalar, own, shape, bit))
    throw mismatch(text, `it is ${words(shape, bit)} in the controller, not ${coding ?? formatDataType(wanted)}`);
  if (coding !== undefined && CODINGS[coding].bytes !== shape.bytes)
    throw mismatch(text, `it is ${words(shape, bit)} in the controller, not ${coding}`);
  const total = elementsOf(shape);
  const left = isArray ? total - (walk.start ?? 0) : 0;
  const asked = counted ?? wanted.count;
  if (asked !== undefined && asked > left)
    throw new FaultError(
      "out_of_range",
      `${quote(text)}: ${asked} elements were requested, ${isArray ? `there are ${left}` : "it is not an array"}`,
    );
  const isWhole = isArray && walk.start === undefined;
  if (asked === undefined && isWhole && !isAuto)
    throw mismatch(
      text,
      `it is ${words(shape, bit)} in the controller: name one element, for example [${shape.firsts.join(",")}], or the type with its count`,
    );
  const count = asked ?? (isWhole ? total : undefined);
  checkSize(shape, count, text);
  // A part of an array begins at its first element.
  const start = walk.start ?? (isWhole && count !== total ? 0 : undefined);
  const scalar = isAuto ? own : (wanted.scalar as ScalarType);
  const dimensions = isWhole && count === total && shape.dimensions.length > 1 ? shape.dimensions : undefined;
  const isShaped = dimensions !== undefined && areDimensionsOf(dimensions, total);
  const type: DataType = isAuto
    ? { scalar, ...(count !== undefined && { count }), ...(isShaped && { dimensions }) }
    : { ...wanted, ...(count !== undefined && { count }) };
  return { place: { path: walk.path, name: walk.name, shape, start, count, bit, scalar, isAuto }, type };
}

function checkReadable(shape: Shape, text: string): void {
  const { code, structure } = shape;
  if (code === UNION) throw mismatch(text, "a union is not read as a whole: name one of its members");
  if (!isStructureCode(code) && !ELEMENTARY.has(code)) throw mismatch(text, `${shapeName(shape)} is not a type that can be read`);
  if (!isStructureCode(code)) return;
  if (!structure) throw mismatch(text, "it is a structure whose members the controller does not list: name one of them");
  if (!isLaidOut(structure))
    throw mismatch(text, `where the members of ${structure.name} lie is not known: name one of them, which is read by its name`);
}

function checkSize(shape: Shape, count: number | undefined, text: string): void {
  const { code, structure, bytes, dimensions } = shape;
  const elements = count ?? 1;
  const oneByOne = code === STRING || isStructureCode(code);
  if (oneByOne && elements > MAX_ONE_BY_ONE)
    throw mismatch(text, `its elements are read one by one, at most ${MAX_ONE_BY_ONE}: name a part, for example {100}`);
  if (structure && elements * valuesIn(structure) > MAX_VALUES)
    throw mismatch(text, `it has more than ${MAX_VALUES} values: name a part of it`);
  if (elements > MAX_COUNT)
    throw mismatch(
      text,
      `it has ${elements} elements, a variable at most ${MAX_COUNT}: name a part, for example [${dimensions.map(() => 1).join(",")}]{1000}`,
    );
  if (elements * bytes > MAX_BYTES) throw mismatch(text, `it has more than ${MAX_BYTES} bytes: name a part of it`);
}

const scalarOf = ({ code }: Shape): ScalarType => ELEMENTARY.get(code)?.scalar ?? "string";

/** Throws FaultError where `bit` is not a bit of what was walked to. */
function bitScalar(bit: number, { shape, start, name }: Walk, text: string): "bool" {
  const width = bitsOf(shape.code);
  if (width === 0) throw mismatch(text, `${name} is ${shapeName(shape)}: only whole numbers have bits`);
  if (shape.dimensions.length > 0 && start === undefined)
    throw mismatch(text, `${name} is an array: name one element, for example ${name}[${shape.firsts.join(",")}].${bit}`);
  if (bit >= width) throw new FaultError("out_of_range", `${quote(text)}: ${shapeName(shape)} has the bits 0 to ${width - 1}`);
  return "bool";
}

/** A word may hold a number with a sign or without one; dates and times are also their nanoseconds. */
function fits(wanted: DataType["scalar"], own: ScalarType, { code, bytes }: Shape, bit: number | undefined): boolean {
  if (wanted === own) return true;
  if (bit !== undefined || wanted === "auto" || wanted === "bool" || wanted === "string") return false;
  if (ELEMENTARY.get(code)?.moment !== undefined) return wanted === "int64";
  const isWhole = /^u?int/.test(own) && /^u?int/.test(wanted);
  return isWhole && NUMBER_BYTES[wanted] === bytes && ELEMENTARY.get(code)?.coding === undefined;
}

function words(shape: Shape, bit: number | undefined): string {
  if (bit !== undefined) return "a bit";
  return shape.dimensions.length === 0 ? shapeName(shape) : `an array ${boundsWords(shape)} of ${shapeName(shape)}`;
}

/** `[1..10, 0..3]`. */
export const boundsWords = ({ dimensions, firsts }: Pick<Shape, "dimensions" | "firsts">): string =>
  `[${dimensions.map((size, i) => `${firsts[i] ?? 0}..${(firsts[i] ?? 0) + size - 1}`).join(", ")}]`;

const mismatch = (text: string, why: string): FaultError => new FaultError("type_mismatch", `${quote(text)}: ${why}`);
