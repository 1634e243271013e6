import { type Cursor, Malformed } from "./cursor.ts";
import { type PValue, readPValue } from "./pvalue.ts";

/** Begins an object. */
export const OBJECT = 0xa1;
const END_OF_OBJECT = 0xa2;
const ATTRIBUTE = 0xa3;
const RELATION = 0xa4;
const TYPE_LIST = 0xab;
const NAME_LIST = 0xac;

/** Objects within objects; the device's own go a few deep. */
const MAX_DEPTH = 16;

/** An object of the device with what came of it. */
export interface PlusObject {
  readonly id: number;
  readonly classId: number;
  /** `raw` is the value as it is on the wire. */
  readonly attributes: ReadonlyMap<number, { readonly value: PValue; readonly raw: Buffer }>;
  readonly children: readonly PlusObject[];
  /** Blocks of the list of members' types and of the list of their names, as they came, without their lengths. */
  readonly typeBlocks: readonly Buffer[];
  readonly nameBlocks: readonly Buffer[];
}

/** A run of objects; it ends at the first byte that begins none. Bytes in them are parts of the message. Throws Malformed. */
export function readObjects(cursor: Cursor, depth = 0): PlusObject[] {
  const objects: PlusObject[] = [];
  while (cursor.peek() === OBJECT) {
    cursor.take(1);
    objects.push(readObject(cursor, depth));
  }
  return objects;
}

function readObject(cursor: Cursor, depth: number): PlusObject {
  if (depth > MAX_DEPTH) throw new Malformed(`objects within objects, more than ${MAX_DEPTH} deep`);
  const id = cursor.u32();
  const classId = cursor.vlq32();
  cursor.vlq32();
  cursor.vlq32();
  const attributes = new Map<number, { value: PValue; raw: Buffer }>();
  const children: PlusObject[] = [];
  const typeBlocks: Buffer[] = [];
  const nameBlocks: Buffer[] = [];
  for (let tag = cursor.u8(); tag !== END_OF_OBJECT; tag = cursor.u8()) {
    switch (tag) {
      case OBJECT:
        children.push(readObject(cursor, depth + 1));
        break;
      case ATTRIBUTE: {
        const attribute = cursor.vlq32();
        const { at } = cursor;
        const value = readPValue(cursor);
        attributes.set(attribute, { value, raw: cursor.bytes.subarray(at, cursor.at) });
        break;
      }
      case RELATION:
        cursor.vlq32();
        cursor.u32();
        break;
      case TYPE_LIST:
        readBlocks(cursor, typeBlocks);
        break;
      case NAME_LIST:
        readBlocks(cursor, nameBlocks);
        break;
      default:
        throw new Malformed(`the tag 0x${tag.toString(16)} in an object`);
    }
  }
  return { id, classId, attributes, children, typeBlocks, nameBlocks };
}

/** Each with its length; one of no length ends them. */
function readBlocks(cursor: Cursor, blocks: Buffer[]): void {
  for (let length = cursor.u16(); length > 0; length = cursor.u16()) blocks.push(cursor.slice(length));
}

/** Every object, also within others. */
export function* allObjects(objects: readonly PlusObject[]): Generator<PlusObject> {
  for (const object of objects) {
    yield object;
    yield* allObjects(object.children);
  }
}
