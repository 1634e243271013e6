import { Malformed } from "./cursor.ts";
import type { PlusObject } from "./objects.ts";

/** One dimension of an array. */
export interface Dimension {
  readonly lower: number;
  readonly count: number;
}

/** A member of a block, a structure or an area, as its type object lists it. */
export interface Member {
  readonly name: string;
  /** Its id within its owner. */
  readonly lid: number;
  /** Which type, in the engineering tool's own numbers. */
  readonly softType: number;
  /** Of an array, the outermost first; empty: it is none. */
  readonly dimensions: readonly Dimension[];
  /** The object that lists its own members: of a structure or of the elements of an array of them. */
  readonly typeId: number | undefined;
  /** Characters of a string; of a string in an array too. */
  readonly chars: number | undefined;
}

/** Id, CRC, type, flags, bits: before what depends on the kind. */
const HEAD_BYTES = 12;
/** Of the offset information by kind: kinds 1 to 7 are older forms of 8 to 14. */
const OFFSET_BYTES: readonly number[] = [104, 4, 12, 20, 68, 32, 48, 96, 4, 12, 20, 68, 32, 48, 96, 40];
const [FB_ARRAY, ARRAY_1, ARRAY_N, STRUCT, STRUCT_ARRAY_1, STRUCT_ARRAY_N, INSTANCE] = [0, 10, 11, 12, 13, 14, 15];
const MAX_DIMENSIONS = 6;
const STRING = 19;
const WSTRING = 62;
/** Characters of a name at most, in bytes of UTF-8. */
const MAX_NAME_BYTES = 255;

/** Members of a type object, one after the other: there may be ten thousands. Throws Malformed. */
export function* membersOf({ typeBlocks, nameBlocks }: PlusObject): Generator<Member> {
  const names = namesOf(nameBlocks);
  let isFirst = true;
  for (const block of typeBlocks) {
    // The first one begins with the first id.
    let at = isFirst ? 4 : 0;
    isFirst = false;
    while (at < block.length) {
      if (at + HEAD_BYTES > block.length) throw new Malformed(`a member of ${block.length - at} bytes in a list of types`);
      const kind = block.readUInt16BE(at + 9) >> 12;
      const end = at + HEAD_BYTES + (OFFSET_BYTES[kind] ?? 0);
      if (end > block.length) throw new Malformed(`a member of kind ${kind} beyond the end of a list of types`);
      const name = names.next();
      if (name.done) throw new Malformed("more members than names");
      yield memberOf(name.value, block, at, kind);
      at = end;
    }
  }
}

function* namesOf(blocks: readonly Buffer[]): Generator<string> {
  for (const block of blocks)
    for (let at = 0; at < block.length; ) {
      const length = block[at] ?? 0;
      const end = at + 1 + length;
      if (end + 1 > block.length || length > MAX_NAME_BYTES)
        throw new Malformed(`a name of ${length} bytes beyond the end of a list of names`);
      yield block.toString("utf8", at + 1, end);
      at = end + 1;
    }
}

function memberOf(name: string, block: Buffer, start: number, kind: number): Member {
  const softType = block.readUInt8(start + 8);
  const info = start + HEAD_BYTES;
  // Kind 0 is an array of instances, kinds 1 to 7 are laid out as 8 to 14.
  const form = kind >= 1 && kind <= 7 ? kind + 7 : kind;
  const isString = softType === STRING || softType === WSTRING;
  return {
    name,
    lid: block.readUInt32LE(start),
    softType,
    dimensions: dimensionsOf(block, info, form),
    typeId: typeIdOf(block, info, form),
    chars: isString ? block.readUInt16LE(info) : undefined,
  };
}

function dimensionsOf(block: Buffer, info: number, form: number): readonly Dimension[] {
  switch (form) {
    case ARRAY_1:
    case STRUCT_ARRAY_1:
      return [{ lower: block.readInt32LE(info + 12), count: block.readUInt32LE(info + 16) }];
    case ARRAY_N:
    case STRUCT_ARRAY_N:
      return severalDimensions(block, info + 20);
    case FB_ARRAY:
      return severalDimensions(block, info + 56);
    default:
      return [];
  }
}

/** Six lower bounds, then six counts, the innermost dimension first; those of no count are not there. */
function severalDimensions(block: Buffer, at: number): readonly Dimension[] {
  const dimensions: Dimension[] = [];
  for (let i = MAX_DIMENSIONS - 1; i >= 0; i--) {
    const count = block.readUInt32LE(at + MAX_DIMENSIONS * 4 + i * 4);
    if (count > 0) dimensions.push({ lower: block.readInt32LE(at + i * 4), count });
  }
  return dimensions;
}

function typeIdOf(block: Buffer, info: number, form: number): number | undefined {
  switch (form) {
    case STRUCT:
    case INSTANCE:
    case FB_ARRAY:
      return block.readUInt32LE(info + 12);
    case STRUCT_ARRAY_1:
      return block.readUInt32LE(info + 28);
    case STRUCT_ARRAY_N:
      return block.readUInt32LE(info + 20 + MAX_DIMENSIONS * 8 + 8);
    default:
      return undefined;
  }
}
