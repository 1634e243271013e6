import { FAULTS } from "./fault.ts";
import type { DataType, Reading, Value } from "./value.ts";

/**
 * Readings on their way to another thread, as columns: 10,000 objects take the receiver 5 ms to take over, columns a tenth of a
 * millisecond. `buffer` holds them one after the other (see `columnsOf`); `others` what is not a number, in the order of the readings.
 */
export interface PackedReadings {
  readonly count: number;
  readonly buffer: ArrayBuffer;
  readonly types: readonly DataType[];
  readonly others: readonly unknown[];
  /** Places of readings that have earlier ones, how many each has, and all of these; absent: there are none. */
  readonly earlier?: { readonly places: readonly number[]; readonly counts: readonly number[]; readonly readings: PackedReadings };
}

/** Bits of a reading's kind. */
const QUALITY = 0b11;
const GOOD = 0;
const UNCERTAIN = 1;
const BAD = 2;
/** There is no reading at this place. */
const NONE = 3;
const BOOLEAN = 0b100;
const OTHER = 0b1000;
const HAS_TIME = 0b1_0000;
const HAS_TYPE = 0b10_0000;
const HAS_DETAIL = 0b100_0000;
const HAS_DOUBT = 0b1000_0000;
const IS_SENT = 0b1_0000_0000;

const BYTES_EACH = 8 + 8 + 4 + 2;

/** Values (a fault's index in FAULTS where the quality is bad), source times, indices into `types`, kinds. */
const columnsOf = (buffer: ArrayBuffer, count: number) => ({
  numbers: new Float64Array(buffer, 0, count),
  times: new Float64Array(buffer, 8 * count, count),
  typeAt: new Uint32Array(buffer, 16 * count, count),
  kinds: new Uint16Array(buffer, 20 * count, count),
});

/** Readings that are written into columns one by one, by places that ascend but for numbers. A place without one has none. */
export class ReadingColumns {
  readonly #count: number;
  readonly #buffer: ArrayBuffer;
  readonly #columns: ReturnType<typeof columnsOf>;
  readonly #types: DataType[] = [];
  readonly #others: unknown[] = [];
  readonly #typeIndex = createTypeIndex(this.#types);

  constructor(count: number) {
    this.#count = count;
    this.#buffer = new ArrayBuffer(BYTES_EACH * count);
    this.#columns = columnsOf(this.#buffer, count);
    this.#columns.kinds.fill(NONE);
  }

  /** Values that are numbers, and truths as 0 and 1, by place; they count once `number` is called for their place. */
  get numbers(): Float64Array {
    return this.#columns.numbers;
  }

  /** Source times, epoch ms; NaN: there is none. */
  get times(): Float64Array {
    return this.#columns.times;
  }

  /** A good value that stands in `numbers`, and its time in `times`. `type`: where the variable's is `auto`. */
  number(place: number, isBoolean: boolean, type?: DataType): void {
    const { times, kinds, typeAt } = this.#columns;
    const time = times[place] ?? 0;
    if (type) typeAt[place] = this.#typeIndex(type);
    kinds[place] = GOOD | (isBoolean ? BOOLEAN : 0) | (Number.isNaN(time) ? 0 : HAS_TIME) | (type ? HAS_TYPE : 0);
  }

  /** Any reading but its earlier ones. */
  set(place: number, reading: Reading): void {
    const { numbers, times, typeAt, kinds } = this.#columns;
    if (reading.quality === "bad") {
      numbers[place] = FAULTS.indexOf(reading.fault);
      if (reading.detail !== undefined) this.#others.push(reading.detail);
      kinds[place] = BAD | (reading.detail === undefined ? 0 : HAS_DETAIL);
      return;
    }
    const { value, sourceTime, type, doubt, isSent } = reading;
    let kind = reading.quality === "good" ? GOOD : UNCERTAIN;
    if (typeof value === "number") numbers[place] = value;
    else if (typeof value === "boolean") {
      kind |= BOOLEAN;
      numbers[place] = value ? 1 : 0;
    } else {
      kind |= OTHER;
      this.#others.push(value);
    }
    if (sourceTime !== undefined) {
      kind |= HAS_TIME;
      times[place] = sourceTime;
    }
    if (type !== undefined) {
      kind |= HAS_TYPE;
      typeAt[place] = this.#typeIndex(type);
    }
    if (doubt !== undefined) {
      kind |= HAS_DOUBT;
      this.#others.push(doubt);
    }
    if (isSent) kind |= IS_SENT;
    kinds[place] = kind;
  }

  packed(): PackedReadings {
    return { count: this.#count, buffer: this.#buffer, types: this.#types, others: this.#others };
  }
}

/** Packs readings; `buffer` may then be transferred. What comes out of `unpackReadings` is equal to what went in. */
export function packReadings(readings: readonly (Reading | undefined)[]): PackedReadings {
  const columns = new ReadingColumns(readings.length);
  const withEarlier: number[] = [];
  for (let i = 0; i < readings.length; i++) {
    // A place that the driver left out, by mistake or because its item was refused, stays left out.
    const reading = readings[i];
    if (reading === undefined) continue;
    if (reading.earlier) withEarlier.push(i);
    columns.set(i, reading);
  }
  const packed = columns.packed();
  return withEarlier.length > 0 ? { ...packed, earlier: packEarlier(readings, withEarlier) } : packed;
}

function packEarlier(readings: readonly (Reading | undefined)[], places: readonly number[]): NonNullable<PackedReadings["earlier"]> {
  const lists = places.map((place) => readings[place]?.earlier ?? []);
  return { places, counts: lists.map(({ length }) => length), readings: packReadings(lists.flat()) };
}

/** Each reading in `readings` that has earlier ones becomes one with them. */
function unpackEarlier(readings: Reading[], { places, counts, readings: packed }: NonNullable<PackedReadings["earlier"]>): void {
  const all = unpackReadings(packed);
  let at = 0;
  for (const [i, place] of places.entries()) {
    const reading = readings[place];
    const end = at + (counts[i] ?? 0);
    if (reading) readings[place] = { ...reading, earlier: all.slice(at, end) };
    at = end;
  }
}

/** Equal types are one object on the other side: there are few, and each would be kept with its reading. */
function createTypeIndex(types: DataType[]): (type: DataType) => number {
  const byText = new Map<string, number>();
  let last: DataType | undefined;
  let lastIndex = 0;
  return (type) => {
    const { scalar, maxBytes, count, dimensions } = type;
    // Neighbours are mostly alike, and drivers make a new object for each.
    const isLast = last?.scalar === scalar && last.maxBytes === maxBytes && last.count === count && last.dimensions === dimensions;
    if (isLast) return lastIndex;
    const text = `${scalar}|${maxBytes}|${count}|${dimensions}`;
    lastIndex = byText.get(text) ?? types.push(type) - 1;
    byText.set(text, lastIndex);
    last = type;
    return lastIndex;
  };
}

export function unpackReadings({ count, buffer, types, others, earlier }: PackedReadings): readonly Reading[] {
  const { numbers, times, typeAt, kinds } = columnsOf(buffer, count);
  const readings = new Array<Reading>(count);
  let next = 0;
  for (let i = 0; i < count; i++) {
    const kind = kinds[i] ?? NONE;
    const code = kind & QUALITY;
    if (code === NONE) continue;
    const number = numbers[i] ?? 0;
    if (code === BAD) {
      const fault = FAULTS[number] ?? "device_error";
      readings[i] = kind & HAS_DETAIL ? { quality: "bad", fault, detail: others[next++] as string } : { quality: "bad", fault };
      continue;
    }
    const quality = code === GOOD ? "good" : "uncertain";
    const value = kind & OTHER ? (others[next++] as Value) : kind & BOOLEAN ? number !== 0 : number;
    const type = kind & HAS_TYPE ? types[typeAt[i] ?? 0] : undefined;
    const sourceTime = times[i] ?? 0;
    if (kind & HAS_TIME) readings[i] = type ? { quality, value, sourceTime, type } : { quality, value, sourceTime };
    else readings[i] = type ? { quality, value, type } : { quality, value };
    if (kind & IS_SENT) readings[i] = { ...readings[i], isSent: true } as Reading;
    if (kind & HAS_DOUBT) readings[i] = { ...readings[i], doubt: others[next++] } as Reading;
  }
  if (earlier) unpackEarlier(readings, earlier);
  return readings;
}
