import { returnValueOf } from "./simulator-messages.ts";
import { crcOf, type Found, findPath, ITEM_CODES } from "./simulator-paths.ts";
import type { ItemRequest, S7PlusPlc } from "./simulator-plc.ts";
import { BLOCK_AREA } from "./simulator-program.ts";
import { Writer } from "./simulator-wire.ts";

const [ROOT, LIMITS, FREE] = [201, 1037, 1081];
const [MAX_READ, MAX_WRITE] = [1000, 1001];
const [BLOCK_VALUES, AREA_VALUES] = [2550, 3736];
const TYPE_OF_BLOCK = 1;
const NOT_ENOUGH_MEMORY = -4;

/** The answers to the items: values, then failures; a number: the code of the whole. */
export function readItems(
  plc: S7PlusPlc,
  items: readonly ItemRequest[],
  isPermitted: boolean,
): { readonly bytes: Buffer; readonly failed: number } | number {
  if (items.length > plc.maxReadItems) return NOT_ENOUGH_MEMORY;
  const writer = new Writer();
  const failures: (readonly [number: number, code: number])[] = [];
  for (const [i, item] of items.entries()) {
    const read = readItem(plc, item, isPermitted);
    if (typeof read === "number") failures.push([i + 1, read]);
    else if (read !== undefined) writer.vlq(i + 1).bytes(read);
  }
  plc.counts.itemErrors += failures.length;
  writer.u8(0);
  for (const [number, code] of failures) writer.vlq(number).vlq64(returnValueOf(code));
  return { bytes: writer.u8(0).done(), failed: failures.length };
}

/** A value; a number: the code of the item; undefined: the answer says nothing of it. */
function readItem(plc: S7PlusPlc, item: ItemRequest, isPermitted: boolean): Buffer | number | undefined {
  if (item.area === ROOT) return limitOf(plc, item);
  if (!isPermitted) return ITEM_CODES.accessDenied;
  const isBlock = item.area >= BLOCK_AREA;
  if (item.subArea !== (isBlock ? BLOCK_VALUES : AREA_VALUES)) return ITEM_CODES.invalidLid;
  if (isBlock && item.lids.length === 1 && item.lids[0] === TYPE_OF_BLOCK) return typeOf(plc, item);
  const found = findPath(plc.program, item.area, item.lids);
  const refused = plc.refuse?.(item, typeof found === "number" ? undefined : found.name);
  if (refused === "lost") return undefined;
  if (refused !== undefined) return refused;
  if (typeof found === "number") return found;
  if (item.lids.length === 0) return ITEM_CODES.onlyDetails;
  return valueOr(plc, item, found);
}

function valueOr(plc: S7PlusPlc, { crc }: ItemRequest, found: Found): Buffer | number {
  if (crc !== 0 && crc !== crcOf(found)) return ITEM_CODES.wrongCrc;
  if (found.isHidden && !plc.readsHidden) return ITEM_CODES.accessDenied;
  if (found.isWhole && !plc.readsArrays) return ITEM_CODES.onlyDetails;
  return found.value();
}

function typeOf(plc: S7PlusPlc, item: ItemRequest): Buffer | number {
  const refused = plc.refuse?.(item, undefined);
  if (refused === "lost") return ITEM_CODES.notFound;
  if (refused !== undefined) return refused;
  const rid = plc.program.typeOfBlock(item.area);
  return rid === undefined ? ITEM_CODES.notFound : new Writer().u8(0, 0x12).u32(rid).done();
}

function limitOf({ maxReadItems, toldReadItems, hidesLimits }: S7PlusPlc, { subArea, lids }: ItemRequest): Buffer | number {
  const amounts: Readonly<Record<number, number>> = { 0: 50, 1: 2000, 2: 65_536 };
  const all: Readonly<Record<number, number>> =
    subArea === LIMITS
      ? { ...amounts, [MAX_READ]: toldReadItems ?? maxReadItems, [MAX_WRITE]: maxReadItems }
      : subArea === FREE
        ? amounts
        : {};
  const limit = lids.length === 1 ? all[lids[0] ?? -1] : undefined;
  if (hidesLimits || limit === undefined) return ITEM_CODES.notFound;
  return new Writer().u8(0, 8).signed(BigInt(limit)).done();
}
