import { ATOMICS, BOOL, elementaryType, type Family, type Member, type MemberType, type Structure } from "./types.ts";

/** Templates: how the controller declares structures. Rockwell 1756-PM020, "Retrieving the definition of a structure". All pure. */

const MEMBER_BYTES = 8;
/** Bit 15 of a type: it is a structure, and the lower 12 bits are its template. */
const IS_STRUCTURE = 0x8000;
const TEMPLATE_MASK = 0x0fff;
/** Bits 13 and 14: dimensions. */
const DIMENSIONS_SHIFT = 13;
const IS_SYSTEM = 0x1000;
const CODE_MASK = 0xff;
/** Predefined types are outside these numbers. */
const [FIRST_USER_ID, LAST_USER_ID] = [0x100, 0xeff];
const PREDEFINED_HOSTS = new Set(["CTL", "Control"]);
const STRING_TYPE = "ASCIISTRING82";
const MAX_MEMBERS = 4096;
const MAX_STRUCTURE_BYTES = 2 ** 20;
const MAX_WORDS = 0x1_0000;

/** What attributes 4, 5, 2 and 1 of a template say. */
export interface TemplateHead {
  /** Of the definition. */
  readonly bytes: number;
  readonly structureBytes: number;
  readonly members: number;
  readonly handle: number;
}

/** The definition has 23 bytes less than its words say (PM020), asked for in whole words. */
export const definitionBytes = (words: number): number => Math.max(0, (words * 4 - 23 + 3) & ~3);

/** A string: what is missing. */
export function parseTemplateHead(bytes: Buffer, at: number, end: number): TemplateHead | string {
  const found = new Map<number, number>();
  const count = end - at >= 2 ? bytes.readUInt16LE(at) : 0;
  let next = at + 2;
  for (let i = 0; i < count && next + 4 <= end; i++) {
    const id = bytes.readUInt16LE(next);
    const isGood = bytes.readUInt16LE(next + 2) === 0;
    const size = !isGood ? 0 : id === 4 || id === 5 ? 4 : 2;
    if (next + 4 + size > end) break;
    if (isGood) found.set(id, bytes.readUIntLE(next + 4, size));
    next += 4 + size;
  }
  const [words, structureBytes, members, handle] = [found.get(4), found.get(5), found.get(2), found.get(1)];
  if (words === undefined || structureBytes === undefined || members === undefined || handle === undefined)
    return "the controller does not say how large a structure is";
  if (members > MAX_MEMBERS || structureBytes < 1 || structureBytes > MAX_STRUCTURE_BYTES || words > MAX_WORDS)
    return `a structure of ${members} members and ${structureBytes} bytes`;
  return { bytes: definitionBytes(words), structureBytes, members, handle };
}

/** What a type word says. */
export interface SymbolType {
  readonly code: number;
  /** Undefined: it is no structure. */
  readonly template: number | undefined;
  readonly dimensions: number;
  readonly isSystem: boolean;
}

export function parseSymbolType(word: number): SymbolType {
  const isStructure = (word & IS_STRUCTURE) !== 0;
  return {
    code: isStructure ? 0 : word & CODE_MASK,
    template: isStructure ? word & TEMPLATE_MASK : undefined,
    dimensions: (word >> DIMENSIONS_SHIFT) & 3,
    isSystem: (word & IS_SYSTEM) !== 0,
  };
}

/** A definition whose nested structures are not known yet. */
export interface Draft {
  readonly id: number;
  readonly head: TemplateHead;
  readonly name: string;
  readonly members: readonly DraftMember[];
}

interface DraftMember {
  readonly name: string;
  readonly info: number;
  readonly type: SymbolType;
  readonly offset: number;
}

/** Templates that a definition has members of. */
export const nestedIds = ({ members }: Draft): readonly number[] =>
  members.flatMap(({ type: { template } }) => (template === undefined ? [] : [template]));

/** A string: what about the definition is wrong. */
export function parseDefinition(id: number, head: TemplateHead, bytes: Buffer): Draft | string {
  const infoBytes = head.members * MEMBER_BYTES;
  if (bytes.length < infoBytes) return `a definition of ${bytes.length} bytes with ${head.members} members`;
  const [first = "", ...names] = bytes.toString("latin1", infoBytes).split("\0", head.members + 1);
  const [name = ""] = first.split(";", 1);
  const members = Array.from({ length: head.members }, (_, i): DraftMember => {
    const at = i * MEMBER_BYTES;
    const type = parseSymbolType(bytes.readUInt16LE(at + 2));
    return { name: names[i] ?? "", info: bytes.readUInt16LE(at), type, offset: bytes.readUInt32LE(at + 4) };
  });
  return { id, head, name: name === STRING_TYPE ? "STRING" : name, members };
}

/**
 * The structure that a definition makes; `structureOf` gives those in it. Undefined where one of them is not known. Members that do not fit
 * into the structure are left out.
 */
export function makeStructure(
  { id, head, name, members }: Draft,
  structureOf: (id: number) => Structure | undefined,
  family: Family,
): Structure | undefined {
  const made: Member[] = [];
  const isPredefined = id < FIRST_USER_ID || id > LAST_USER_ID;
  for (const { name: memberName, info, type, offset } of members) {
    const structure = type.template === undefined ? undefined : structureOf(type.template);
    if (type.template !== undefined && !structure) return undefined;
    const isHidden =
      memberName === "" ||
      memberName.startsWith("ZZZZZZZZZZ") ||
      memberName.startsWith("__") ||
      (isPredefined && PREDEFINED_HOSTS.has(memberName));
    const isArray = info > 0 && (type.dimensions > 0 || type.code !== BOOL);
    const memberType: MemberType = structure ? { structure } : elementaryType(type.code, isArray ? 1 : 0, family);
    const isBit = type.code === BOOL && !structure && type.dimensions === 0;
    const member: Member = {
      name: memberName,
      offset: isBit ? offset + (info >> 3) : offset,
      type: memberType,
      ...(isArray && { count: info }),
      ...(isBit && { bit: info & 7 }),
      isHidden,
    };
    if (member.offset + lengthOf(member) <= head.structureBytes) made.push(member);
  }
  const chars = charsOf(made);
  return { id, name, handle: head.handle, bytes: head.structureBytes, members: made, ...(chars !== undefined && { chars }) };
}

function lengthOf({ type, count = 1, bit }: Member): number {
  if (bit !== undefined) return 1;
  const bytes = "structure" in type ? type.structure.bytes : (ATOMICS.get(type.code)?.bytes ?? 1);
  return bytes * count;
}

const SINT = 0xc2;
const DINT = 0xc4;

/** A string has the members LEN and DATA, and nothing else. */
function charsOf(members: readonly Member[]): number | undefined {
  const [length, data, ...others] = members.filter(({ isHidden }) => !isHidden);
  const isLength =
    length?.name === "LEN" && length.offset === 0 && "code" in length.type && length.type.code === DINT && length.count === undefined;
  const isData = data?.name === "DATA" && data.offset === 4 && "code" in data.type && data.type.code === SINT;
  return isLength && isData && others.length === 0 ? data?.count : undefined;
}
