import { type Bits, MAX_MESSAGE_BYTES } from "../../drivers/replay.ts";

/** The memory of a device as a recording tells it: bits by area and index, each with the moments at which it was read. */

/** Moments of one answer, ascending; it was given so many times one after the other. */
export type Moments = readonly number[];

interface Part {
  readonly moments: Moments;
  readonly bytes: Buffer;
}

/** One range of one request: all that it was answered, in the order of the recording. */
interface Track {
  readonly from: number;
  readonly to: number;
  readonly parts: Part[];
}

export interface MemoryRange {
  readonly area: string;
  readonly from: number;
  readonly count: number;
}

/** Different answers of all ranges: each takes about 200 bytes beside the recording's own. */
export const MAX_PARTS = 500_000;
const MAX_RANGE_BITS = MAX_MESSAGE_BYTES * 8;

export class Areas {
  readonly #areas = new Map<string, Map<string, Track[]>>();
  readonly #maxParts: number;
  #parts = 0;
  /** Different ranges that are kept. */
  ranges = 0;
  /** Ranges of answers for which there was no room. */
  leftOut = 0;

  constructor(maxParts = MAX_PARTS) {
    this.#maxParts = maxParts;
  }

  /**
   * Adds what one answer told. Answers of one `request` come in their order. `moments` are above zero and no other answer's; the array may grow
   * until the first question.
   */
  add(request: number, { area, from, count, bytes }: Bits, moments: Moments): void {
    if (count <= 0 || count > MAX_RANGE_BITS || moments.length === 0) return;
    if (this.#parts >= this.#maxParts) {
      this.leftOut++;
      return;
    }
    this.#parts++;
    const tracks = this.#areas.get(area) ?? new Map<string, Track[]>();
    this.#areas.set(area, tracks);
    const key = `${request} ${from} ${count}`;
    const same = tracks.get(key) ?? [];
    if (same.length === 0) {
      tracks.set(key, same);
      this.ranges++;
    }
    // A request may name the same range twice: a track has each moment once.
    const track = same.find(({ parts }) => parts.at(-1)?.moments !== moments);
    if (track) track.parts.push({ moments, bytes });
    else same.push({ from, to: from + count, parts: [{ moments, bytes }] });
  }

  has(area: string): boolean {
    return this.#areas.has(area);
  }

  /**
   * The bits as they were last read at `moment` or before it; those that were not read yet as they were first read. Undefined: at least one was
   * never read.
   */
  at({ area, from, count }: MemoryRange, moment: number): Buffer | undefined {
    const tracks = this.#within({ area, from, count });
    if (tracks.length === 0) return undefined;
    const value = Buffer.alloc(Math.ceil(count / 8));
    const covered = Buffer.alloc(value.length);
    // Later reads lie over earlier ones; those that are ahead lie below all, the nearest uppermost.
    const painted = tracks.map((track) => ({ track, ...lastOf(track, moment) })).sort((a, b) => heightOf(a, moment) - heightOf(b, moment));
    for (const { track, bytes } of painted) {
      const [begin, end] = [Math.max(from, track.from), Math.min(from + count, track.to)];
      copyBits(bytes, begin - track.from, value, begin - from, end - begin);
      fillBits(covered, begin - from, end - begin);
    }
    return isFilled(covered, count) ? value : undefined;
  }

  /** The last reading up to `moment`, else the first one, of those from index 0 on: its bytes and its range. */
  whole(area: string, moment: number): { readonly bytes: Buffer; readonly range: MemoryRange } | undefined {
    let best: { readonly moment: number; readonly bytes: Buffer; readonly range: MemoryRange } | undefined;
    for (const track of this.#within({ area, from: 0, count: 1 })) {
      const last = lastOf(track, moment);
      if (!best || heightOf(last, moment) > heightOf(best, moment)) best = { ...last, range: { area, from: 0, count: track.to } };
    }
    return best;
  }

  /** The next moment behind this one at which any of these bits was read again. Undefined: none comes. */
  nextAfter(ranges: readonly MemoryRange[], moment: number): number | undefined {
    let least: number | undefined;
    for (const range of ranges) {
      const { from, count } = range;
      const covered = Buffer.alloc(Math.ceil(count / 8));
      for (const track of this.#within(range).sort((a, b) => firstOf(a) - firstOf(b))) {
        const [begin, end] = [Math.max(from, track.from), Math.min(from + count, track.to)];
        const first = firstOf(track);
        let next = momentAfter(track, moment);
        // The first value of a bit holds from the beginning.
        if (next === first && !isAnyFilled(covered, begin - from, end - begin)) next = momentAfter(track, first);
        fillBits(covered, begin - from, end - begin);
        if (next !== undefined && next < (least ?? Number.POSITIVE_INFINITY)) least = next;
      }
    }
    return least;
  }

  #within({ area, from, count }: MemoryRange): Track[] {
    const tracks = this.#areas.get(area);
    if (!tracks || count <= 0 || count > MAX_RANGE_BITS) return [];
    const found: Track[] = [];
    for (const same of tracks.values()) for (const track of same) if (track.from < from + count && track.to > from) found.push(track);
    return found;
  }
}

const heightOf = ({ moment: read }: { readonly moment: number }, moment: number): number => (read > moment ? -read : read);

const firstOf = ({ parts }: Track): number => parts[0]?.moments[0] ?? 0;

/** How many of these, ascending by `of`, are at most `most`. */
function countUpTo<T>(sorted: readonly T[], of: (one: T) => number, most: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const one = sorted[middle];
    if (one !== undefined && of(one) <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}

const itself = (moment: number): number => moment;
const beginOf = ({ moments }: Part): number => moments[0] ?? 0;

/** The last reading up to this moment, else the first one. */
function lastOf({ parts }: Track, moment: number): { readonly moment: number; readonly bytes: Buffer } {
  const part = parts[Math.max(0, countUpTo(parts, beginOf, moment) - 1)];
  const moments = part?.moments ?? [];
  return { moment: moments[Math.max(0, countUpTo(moments, itself, moment) - 1)] ?? 0, bytes: part?.bytes ?? Buffer.alloc(0) };
}

function momentAfter({ parts }: Track, moment: number): number | undefined {
  const behind = countUpTo(parts, beginOf, moment);
  const moments = parts[behind - 1]?.moments ?? [];
  return moments[countUpTo(moments, itself, moment)] ?? parts[behind]?.moments[0];
}

/** Copies bits between any two places; whole bytes where both lie alike. */
function copyBits(source: Buffer, at: number, target: Buffer, to: number, count: number): void {
  let done = 0;
  if (((at | to) & 7) === 0) {
    source.copy(target, to >> 3, at >> 3, (at >> 3) + (count >> 3));
    done = count & ~7;
  }
  for (let i = done; i < count; i++) {
    const bit = ((source[(at + i) >> 3] ?? 0) >> ((at + i) & 7)) & 1;
    const mask = 1 << ((to + i) & 7);
    const byte = target[(to + i) >> 3] ?? 0;
    target[(to + i) >> 3] = bit === 1 ? byte | mask : byte & ~mask;
  }
}

function fillBits(target: Buffer, to: number, count: number): void {
  let done = 0;
  if ((to & 7) === 0) {
    target.fill(0xff, to >> 3, (to >> 3) + (count >> 3));
    done = count & ~7;
  }
  for (let i = to + done; i < to + count; i++) target[i >> 3] = (target[i >> 3] ?? 0) | (1 << (i & 7));
}

function isAnyFilled(covered: Buffer, from: number, count: number): boolean {
  for (let i = from; i < from + count; i++) if (((covered[i >> 3] ?? 0) & (1 << (i & 7))) !== 0) return true;
  return false;
}

function isFilled(covered: Buffer, count: number): boolean {
  const whole = count >> 3;
  for (let i = 0; i < whole; i++) if (covered[i] !== 0xff) return false;
  const rest = (1 << (count & 7)) - 1;
  return ((covered[whole] ?? 0) & rest) === rest;
}
