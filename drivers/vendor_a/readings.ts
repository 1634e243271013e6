import { FaultError, PartialRefusal, type RefusedItem } from "../../src/model/fault.ts";
import type { DataType, Reading } from "../../src/model/value.ts";
import { type Filled, ReusedReadings, type Slot } from "../lib/reused-readings.ts";
import { type Reply, STATUS } from "./cip.ts";
import { type CipItem, type CipRead, typeHeaderBytes } from "./plan.ts";
import { refusalOf } from "./refusals.ts";
import { STRUCTURE } from "./types.ts";

const reused = new ReusedReadings<CipRead>();

/** A reply may be filled up to a whole double word; more of it is another value. */
const MOST_PADDING_BYTES = 3;

/** A slot of a variable without a type of its own. */
type TypedSlot = Slot & { type?: DataType };

/** What the replies to the items of one read come to; made for each answer, and small. */
export class Outcome {
  readonly request: CipRead;
  /** Items whose data did not fit into the answer. */
  cut: CipItem[] | undefined;
  /** Items that have another type than they were looked up with, and what they have. */
  changed: { readonly item: CipItem; readonly words: string }[] | undefined;
  readonly #filled: Filled;
  #refused: RefusedItem[] | undefined;
  /** Items that are not to be had at this moment, and what the first of them was refused with. */
  #busyItems = 0;
  #busy: FaultError | undefined;
  #answered = 0;

  constructor(request: CipRead) {
    this.request = request;
    this.#filled = reused.next(request);
  }

  /** One item's reply. */
  take(item: CipItem, { bytes, at, end, status, extended }: Reply): void {
    if (status === STATUS.tooLarge) {
      this.#cut(item);
      return;
    }
    if (status !== STATUS.ok && status !== STATUS.partial) {
      this.refuse(item, refusalOf(status, extended, item.name));
      return;
    }
    const changed = changeOf(item, bytes, at, end);
    if (changed !== undefined) this.change(item, changed);
    else if (status === STATUS.partial) this.#cut(item);
    else this.fill(item, bytes, at + typeHeaderBytes(item.code), end);
  }

  /** The item has another type than it was looked up with. */
  change(item: CipItem, words: string): void {
    this.changed ??= [];
    this.changed.push({ item, words });
  }

  /** The item's data are there. */
  fill(item: CipItem, data: Buffer, at: number, end: number): void {
    if (!isText(item) && (end - at < item.bytes || end - at > item.bytes + MOST_PADDING_BYTES)) {
      this.refuse(
        item,
        new FaultError("device_error", `${item.name}: the controller sent ${end - at} bytes, ${item.bytes} were asked for`),
      );
      return;
    }
    const { points, decoders, offsets } = this.request;
    const { slots, readings } = this.#filled;
    const last = item.firstPoint + item.points;
    for (let i = item.firstPoint; i < last; i++) {
      const decode = decoders[i];
      const slot: TypedSlot | undefined = slots[i];
      if (!decode || !slot) continue;
      const point = points[i];
      if (point?.address.place?.isAuto) slot.type = point.type;
      readings[i] = decode(data, at + (offsets[i] ?? 0), end, slot);
    }
    this.#answered++;
  }

  /** The answer had no room for it, or for all of it. */
  #cut(item: CipItem): void {
    this.cut ??= [];
    this.cut.push(item);
  }

  /**
   * One point's refusal is its reading, and so is that of an item that is not to be had at this moment, because parts of it are not either. Of
   * several points it is asked in halves which of them the refusal is about.
   */
  refuse(item: CipItem, refusal: FaultError): void {
    const isBusy = refusal.scope !== "points";
    if (isBusy) {
      this.#busy ??= refusal;
      this.#busyItems++;
    }
    const places = Array.from({ length: item.points }, (_, i) => item.firstPoint + i);
    if (isBusy || item.points === 1) {
      const readings = this.#filled.readings as Reading[];
      for (const place of places) readings[place] = { quality: "bad", fault: refusal.fault, detail: refusal.message };
      this.#answered++;
      return;
    }
    this.#refused ??= [];
    this.#refused.push({ places, refusal });
  }

  /** Throws FaultError: all was refused; of the scope `busy`: nothing is to be had at this moment; PartialRefusal: some was refused. */
  readings(): readonly Reading[] {
    if (this.#busy && this.#busyItems === this.request.items.length) throw busyAll(this.#busy, this.#busyItems);
    const [first, ...others] = this.#refused ?? [];
    if (!first) return this.#filled.readings;
    if (this.#answered === 0 && others.length === 0) throw first.refusal;
    const readings: (Reading | undefined)[] = [...this.#filled.readings];
    for (const { places } of [first, ...others]) for (const place of places) readings[place] = undefined;
    throw new PartialRefusal(readings, [first, ...others]);
  }
}

/** True of the controller, and not of one item: each of a request says so. */
function busyAll(busy: FaultError, items: number): FaultError {
  if (items === 1) return busy;
  return new FaultError(busy.fault, `${busy.message}; so are all ${items} items of its request`, { scope: busy.scope, cause: busy });
}

/** Its length is in the data. */
const isText = ({ code }: CipItem): boolean => code === 0xd0 || code === 0xda;

/** Undefined: it has the type that it was looked up with. */
export function changeOf({ code, handle }: CipItem, bytes: Buffer, at: number, end: number): string | undefined {
  if (end - at < typeHeaderBytes(code)) return "no type";
  const got = bytes.readUInt16LE(at);
  if (got !== code) return `the type 0x${got.toString(16)} instead of 0x${code.toString(16)}`;
  if (code !== STRUCTURE) return undefined;
  const gotHandle = bytes.readUInt16LE(at + 2);
  return gotHandle === handle ? undefined : `a structure with the handle 0x${gotHandle.toString(16)} instead of 0x${handle.toString(16)}`;
}
