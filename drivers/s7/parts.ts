import { strideOf } from "../lib/step7-types.ts";
import { answerBytes, bytesOf, emptyResults, GOOD, type ItemResults, itemsRoom, maxItemBytes, type Range } from "./frames.ts";
import type { S7Item, S7Read } from "./plan.ts";

/** A piece of an item, or all of it. */
export interface Part extends Range {
  readonly bytes: number;
  readonly item: number;
  /** In the bytes of the item. */
  readonly from: number;
}

/**
 * Reads the items of a request in several jobs and joins what they bring. Pieces are not of one instant, so that a value is only cut where it
 * is longer than a message, and an array between two elements.
 */
export class Parts {
  /** What was read, item behind item. */
  readonly data: Buffer;
  /** As of one answer, with the places in `data`. */
  readonly results: ItemResults;
  readonly #request: S7Read;
  readonly #items: readonly S7Item[];
  #item = 0;
  #from = 0;

  constructor(request: S7Read) {
    const { items } = request;
    this.#request = request;
    this.#items = items;
    this.results = emptyResults(items.length);
    let bytes = 0;
    for (const [i, item] of items.entries()) {
      this.results.codes[i] = GOOD;
      this.results.dataAt[i] = bytes;
      bytes += item.bytes;
    }
    this.data = Buffer.alloc(bytes);
  }

  /** What the next job reads; empty: all is read. What is not taken is read again. */
  next(pduBytes: number, maxItems: number): readonly Part[] {
    const room = itemsRoom(pduBytes);
    const most = maxItemBytes(pduBytes) & ~1;
    const parts: Part[] = [];
    let left = room.answerBytes;
    let from = this.#from;
    for (let i = this.#item; i < this.#items.length && parts.length < Math.min(maxItems, room.requestItems); i++) {
      const item = this.#items[i];
      if (!item) break;
      const bytes = item.bytes - from <= most ? item.bytes - from : cutIn(this.#request, item, from, most) - from;
      if (answerBytes(bytes) > left) break;
      parts.push(partOf(item, i, from, bytes));
      left -= answerBytes(bytes);
      // The rest of a long item begins the next job.
      if (from + bytes < item.bytes) break;
      from = 0;
    }
    return parts;
  }

  /** These were answered; `results` are the job's. */
  take(parts: readonly Part[], message: Buffer, { codes, dataAt, miscounts }: ItemResults): void {
    for (const [i, { item, from, bytes }] of parts.entries()) {
      const at = dataAt[i] ?? 0;
      const code = codes[i] ?? 0;
      const miscount = miscounts[i] ?? 0;
      const isGood = code === GOOD && miscount === 0;
      if (isGood) message.copy(this.data, (this.results.dataAt[item] ?? 0) + from, at, at + bytes);
      else {
        this.results.codes[item] = code;
        this.results.miscounts[item] = miscount;
      }
      // One piece that is refused is the refusal of its item.
      const isWhole = !isGood || from + bytes >= (this.#items[item]?.bytes ?? 0);
      this.#item = isWhole ? item + 1 : item;
      this.#from = isWhole ? 0 : from + bytes;
    }
  }
}

/** The place where the piece of an item that begins at `from` and has at most so many bytes ends: between two values or two elements, if it can. */
function cutIn({ points, offsets }: S7Read, item: S7Item, from: number, most: number): number {
  let cut = from + most;
  // From the last point to the first: where one moves the cut, only points before it can be cut by the new one.
  for (let at = item.firstPoint + item.points - 1; at >= item.firstPoint; at--) {
    const address = points[at]?.address;
    const offset = offsets[at] ?? 0;
    if (!address || offset >= cut || offset + address.length * bytesOf({ area: item.area, length: 1 }) <= cut) continue;
    const stride = address.kind === "BOOL" ? 1 : strideOf(address.kind, address.chars);
    const before = offset > from ? offset : offset + Math.floor((cut - offset) / stride) * stride;
    if (before > from) cut = before;
  }
  return cut;
}

function partOf({ area, block, start }: S7Item, item: number, from: number, bytes: number): Part {
  const unit = bytesOf({ area, length: 1 });
  return { area, block, start: start + from / unit, length: bytes / unit, bytes, item, from };
}
