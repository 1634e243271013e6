import { placeOf } from "./simulator-places.ts";
import { AREAS, BEHIND_INDEX, type Field, type Layout, type Member, quoted, rootOf, type S7PlusProgram } from "./simulator-program.ts";
import { arrayBytes, DTL, dtlBytes, dtlMember, valueBytes } from "./simulator-values.ts";
import { Writer } from "./simulator-wire.ts";

/** What a CPU answers for an item that it cannot read. */
export const ITEM_CODES = {
  notFound: -12,
  wrongCrc: -17,
  onlyDetails: -85,
  accessDenied: -100,
  invalidLid: -255,
} as const;

/** What a path of ids leads to. */
export interface Found {
  /** As a person writes it: `"Motor".speed[3]`. */
  readonly name: string;
  /** The members that lead to it, from the top down. */
  readonly members: readonly Member[];
  /** It is an element of an array, or lies in one. */
  readonly isIndexed: boolean;
  readonly isHidden: boolean;
  /** It is an array with all of its elements. */
  readonly isWhole: boolean;
  /** As a message has it. */
  value(): Buffer;
}

/** The place where the walk along a path has come to. */
interface Place {
  readonly name: string;
  readonly members: readonly Member[];
  readonly isIndexed: boolean;
}

/** What the ids lead to; a number: the code that the CPU answers with. */
export function findPath(program: S7PlusProgram, area: number, lids: readonly number[]): Found | number {
  const [letter, tags] = Object.entries(AREAS).find(([, [id]]) => id === area) ?? [];
  const type = tags ? tags[1] : program.typeOfBlock(area);
  const layout = type === undefined ? undefined : program.layout(type);
  if (!layout) return ITEM_CODES.notFound;
  return walk(program, layout, { name: letter ? rootOf(letter) : `"${program.block(area)?.name}"`, members: [], isIndexed: false }, lids);
}

function walk(program: S7PlusProgram, layout: Layout, above: Place, [lid, ...behind]: readonly number[]): Found | number {
  const member = lid === undefined ? undefined : layout.byLid.get(lid);
  if (!member) return ITEM_CODES.invalidLid;
  const { field, elementary, rid } = member;
  let place: Place = {
    name: above.name === "" ? `"${field.name}"` : `${above.name}.${quoted(field.name)}`,
    members: [...above.members, member],
    isIndexed: above.isIndexed,
  };
  let rest: readonly number[] = behind;
  let element = 0;
  if (field.bounds) {
    if (rest.length === 0) return wholeArray(program, member, place);
    const at = placeOf(member, rest[0] ?? 0);
    if (!at || (rid !== undefined && rest[1] !== BEHIND_INDEX)) return ITEM_CODES.invalidLid;
    place = { ...place, name: `${place.name}[${at.indices.join(",")}]`, isIndexed: true };
    rest = rest.slice(rid === undefined ? 1 : 2);
    element = at.element;
  }
  if (elementary) {
    const read = () => valueBytes(elementary, program.scalar(place.name, field, element, elementary.zero));
    return rest.length > 0 ? ITEM_CODES.invalidLid : found(place, read);
  }
  if (rid === DTL.rid) return dtl(program, field, element, place, rest);
  const inner = rid === undefined ? undefined : program.layout(rid);
  return rest.length === 0 || !inner ? ITEM_CODES.onlyDetails : walk(program, inner, place, rest);
}

const found = (place: Place, value: () => Buffer, isWhole = false): Found => ({
  ...place,
  isWhole,
  isHidden: place.members.some(({ field }) => field.hidden === true),
  value,
});

/** An array of one dimension can be read as one where its elements are no arrays themselves. */
function wholeArray(program: S7PlusProgram, { field, elementary }: Member, place: Place): Found | number {
  const [bounds, ...more] = field.bounds ?? [];
  if (!bounds || more.length > 0 || !elementary || elementary.elements !== undefined) return ITEM_CODES.onlyDetails;
  const [low, high] = bounds;
  const element = (i: number) => program.scalar(`${place.name}[${low + i}]`, field, i, elementary.zero);
  const all = () => Array.from({ length: high - low + 1 }, (_, i) => element(i));
  return found(place, () => arrayBytes(elementary, all()), true);
}

function dtl(program: S7PlusProgram, field: Field, element: number, place: Place, rest: readonly number[]): Found | number {
  const value = () => String(program.scalar(place.name, field, element, DTL.zero));
  if (rest.length === 0) return found(place, () => dtlBytes(value()));
  const member = rest.length === 1 ? program.layout(DTL.rid)?.byLid.get(rest[0] ?? 0) : undefined;
  const type = member?.elementary;
  if (!member || !type) return ITEM_CODES.invalidLid;
  const { name } = member.field;
  const inner = { ...place, name: `${place.name}.${name}`, members: [...place.members, member] };
  return found(inner, () => valueBytes(type, dtlMember(value(), name)));
}

const POLYNOMIAL = 0xf4acfb13;
/** Before the sum of each level but the first. */
const NEXT_LEVEL = 0x89;
const WHOLE_ARRAY = 0x10;
const [BIT, PACKED_BIT] = [1, 40];
/** Types that are summed as the type that they are made of. */
const BASES: readonly (readonly [from: number, to: number, base: number])[] = [
  [128, 134, 6],
  [171, 171, 6],
  [144, 156, 4],
  [168, 170, 4],
  [160, 164, 5],
  [192, 197, 5],
  [173, 175, 53],
  [208, 210, 53],
];

/** Most significant bit first, from 0, without a final exclusive or. */
function crc(bytes: Uint8Array): number {
  let sum = 0;
  for (const byte of bytes) {
    sum ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) sum = (sum & 0x80000000) === 0 ? sum << 1 : (sum << 1) ^ POLYNOMIAL;
  }
  return sum >>> 0;
}

function typeByte({ elementary, rid }: Member): number {
  const soft = elementary?.soft ?? (rid === DTL.rid ? DTL.soft : STRUCTURE);
  if (soft === PACKED_BIT) return BIT;
  return BASES.find(([from, to]) => soft >= from && soft <= to)?.[2] ?? soft;
}

/** What type lists say of a structure. */
export const STRUCTURE = 17;

/** The sum over the name and type of one member, as type lists have it. */
export function elementCrc(member: Member): number {
  const writer = new Writer().bytes(Buffer.from(member.field.name));
  const [bounds] = member.field.bounds ?? [];
  if (bounds) writer.u8(WHOLE_ARRAY, typeByte(member)).u32le(bounds[0]);
  else writer.u8(typeByte(member));
  return crc(writer.done());
}

/** The sum over a symbol's path, as reads may have it; undefined: a path with an index has none. */
export function crcOf({ members, isIndexed }: Pick<Found, "members" | "isIndexed">): number | undefined {
  if (isIndexed) return undefined;
  const sums = members.map(elementCrc);
  const writer = new Writer();
  for (const [level, sum] of sums.entries()) (level === 0 ? writer : writer.u8(NEXT_LEVEL)).u32le(sum);
  return crc(writer.done());
}
