import type { AnyDriver } from "../../drivers/driver.ts";
import type { WireEvent } from "../model/wire.ts";

/** Frames that are put into words, the latest: as many as a page shows. */
const MAX_WORDED = 200;

/** The latest frames in the words of their driver, by number; without those that are withheld, cut, or in parts. Pure. */
export function wordsOfFrames(events: readonly WireEvent[], { frameWords }: Pick<AnyDriver, "frameWords">): ReadonlyMap<number, string> {
  const words = new Map<number, string>();
  if (!frameWords) return words;
  for (const { number, kind, direction, bytes, length, withheld } of events.slice(-MAX_WORDED)) {
    if (kind !== "data" || withheld !== undefined || bytes.length !== length) continue;
    const found = frameWords(Buffer.from(bytes), direction);
    if (found !== undefined) words.set(number, found);
  }
  return words;
}
