import { FaultError } from "../../src/model/fault.ts";
import { type DataType, formatDataType } from "../../src/model/value.ts";
import type { CodedKind, Kind, KindOf } from "../lib/step7-types.ts";
import { sameButCase } from "../lib/text.ts";
import { type Level, levelText, type Place, type PlusAddress } from "./address.ts";
import { pathCrc } from "./crc.ts";
import type { Dimension, Member } from "./members.ts";
import { type ElementType, elementTypeOf, isDtl, isStructured, isWhole, stridesOf, typeOfElement } from "./soft-types.ts";

/** Members of a type by name. */
export type TypeTable = ReadonlyMap<string, Member>;
/** The table of a type; undefined: the CPU has none. */
export type TypeOf = (typeId: number) => Promise<TypeTable | undefined>;

/** A block or an area with the type that lists its members. */
export interface Root {
  readonly area: number;
  readonly typeId: number;
}

/** Behind the index of an element that is a structure, as every CPU was seen to have it. */
const ELEMENT_OF_STRUCTURES = 1;

/** Why one symbol is not to be had: nothing is wrong with the look-up itself. */
export class SymbolFault extends FaultError {}

const notFound = (text: string, why: string): SymbolFault => new SymbolFault("not_found", `${text}: ${why}`);

/** A symbol followed down to its last level. */
interface Walk {
  readonly lids: number[];
  readonly members: Member[];
  /** An element of an array was named, which the CPU checks nothing of. */
  hasIndex: boolean;
}

/**
 * The place where a symbol is, from its first level behind `root` on. Throws FaultError: it is not there, is no value, or has another type than the
 * variable; and what `typeOf` throws.
 */
export async function locate(
  address: PlusAddress,
  levels: readonly Level[],
  root: Root,
  typeOf: TypeOf,
  checksNames: boolean,
): Promise<{ readonly place: Place; readonly type: DataType }> {
  const { text, wanted } = address;
  const walk: Walk = { lids: [], members: [], hasIndex: false };
  let { typeId }: { typeId: number | undefined } = root;
  for (const [i, level] of levels.entries()) {
    const table: TypeTable | undefined = typeId === undefined ? undefined : await typeOf(typeId);
    const member: Member | undefined = table?.get(level.name);
    if (!member) throw notFound(text, missingWords(level.name, walk.members.at(-1), table));
    const isLast = i === levels.length - 1;
    walk.members.push(member);
    walk.lids.push(member.lid);
    takeIndices(text, level, member, isLast, walk);
    typeId = member.typeId;
  }
  return placeOf(text, levels.at(-1), root.area, walk, wanted, checksNames);
}

/** Which name may be meant. */
export function nearWords(name: string, ...lists: readonly Iterable<string>[]): string {
  const near = lists.map((known) => sameButCase(name, known)).find((one) => one !== undefined);
  return near === undefined ? "collector browse shows what it has" : `it has ${levelText(near)}: write the name in the same letters`;
}

function missingWords(name: string, owner: Member | undefined, table: TypeTable | undefined): string {
  if (!table) return owner ? `${levelText(owner.name)} has no members` : "the PLC tells nothing of what is in it";
  return `the PLC's program has no ${levelText(name)} there; ${nearWords(name, table.keys())}`;
}

/** Throws FaultError: the indices are not those of the member. */
function takeIndices(text: string, { name, indices }: Level, member: Member, isLast: boolean, walk: Walk): void {
  const { dimensions } = member;
  if (indices === undefined) {
    if (dimensions.length > 0 && !isLast)
      throw notFound(text, `${levelText(name)} is an array, name an element: ${exampleOf(name, dimensions)}`);
    return;
  }
  if (indices.length !== dimensions.length)
    throw notFound(
      text,
      dimensions.length === 0 ? `${levelText(name)} is not an array` : `an element of ${levelText(name)} is ${exampleOf(name, dimensions)}`,
    );
  walk.hasIndex = true;
  walk.lids.push(elementIndex(text, indices, member));
  if (isStructured(member) || isDtl(member)) walk.lids.push(ELEMENT_OF_STRUCTURES);
}

/** Counted from 0, whatever the lower bounds, the innermost dimension fastest. */
function elementIndex(text: string, indices: readonly number[], member: Member): number {
  const strides = stridesOf(member);
  let index = 0;
  for (const [i, { lower, count }] of member.dimensions.entries()) {
    const at = (indices[i] ?? 0) - lower;
    if (at < 0 || at >= count)
      throw new SymbolFault("out_of_range", `${text}: the index ${indices[i]} is outside ${lower}..${lower + count - 1}`);
    index += at * (strides[i] ?? 0);
  }
  return index;
}

const exampleOf = (name: string, dimensions: readonly Dimension[]): string =>
  `${levelText(name)}[${dimensions.map(({ lower }) => lower).join(",")}]`;

function placeOf(
  text: string,
  last: Level | undefined,
  area: number,
  { lids, members, hasIndex }: Walk,
  wanted: KindOf | undefined,
  checksNames: boolean,
): { readonly place: Place; readonly type: DataType } {
  const member = members.at(-1);
  const element = member && elementTypeOf(member);
  if (!member || isStructured(member)) throw new SymbolFault("type_mismatch", `${text} is a structure or a block: name a member of it`);
  if (!element) throw new SymbolFault("type_mismatch", `${text} has the type ${member.softType}, whose values are not read`);
  const isArray = member.dimensions.length > 0 && last?.indices === undefined;
  if (isArray && !isWhole(member))
    throw new SymbolFault(
      "type_mismatch",
      `${text} is an array that is not read as one value: name an element, ${exampleOf(member.name, member.dimensions)}`,
    );
  const count = isArray ? member.dimensions[0]?.count : element.count;
  const own = typeOfElement(element, count);
  const crc = checksNames && !hasIndex ? pathCrc(members) : 0;
  const place: Place = { area, lids, kind: kindFor(text, element, own, wanted, count), chars: element.chars, count, crc };
  return { place, type: wanted ? typeOfElement({ ...element, kind: place.kind ?? element.kind }, count) : own };
}

/** Kinds of the CPU in which a person reads digits. */
const DIGITS_IN: Readonly<Record<CodedKind, Kind>> = {
  BYTE_BCD: "BYTE",
  WORD_BCD: "WORD",
  DWORD_BCD: "DWORD",
  LWORD_BCD: "LWORD",
  BCD16: "WORD",
  BCD32: "DWORD",
};
const hasDigits = (kind: Kind): kind is CodedKind => Object.hasOwn(DIGITS_IN, kind);

/**
 * The kind that a value is read as: the CPU's, or what the person wants where that is the same scalar, or digits in the CPU's bytes. Throws
 * FaultError.
 */
function kindFor(text: string, element: ElementType, own: DataType, wanted: KindOf | undefined, count: number | undefined): Kind {
  if (!wanted) return element.kind;
  if (hasDigits(wanted.kind) && DIGITS_IN[wanted.kind] === element.kind && wanted.count === count) return wanted.kind;
  const asked = typeOfElement({ kind: wanted.kind, chars: wanted.chars, count: wanted.count }, wanted.count);
  if (asked.scalar !== own.scalar || hasDigits(wanted.kind) || wanted.count !== count)
    throw new SymbolFault(
      "type_mismatch",
      `${text} is ${element.kind} (${formatDataType(own)}) in the PLC, not ${hasDigits(wanted.kind) ? wanted.kind : formatDataType(asked)}`,
    );
  return element.kind;
}
