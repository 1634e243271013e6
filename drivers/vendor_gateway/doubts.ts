import { type Warning, warning } from "../../src/model/warning.ts";
import { quote } from "../lib/text.ts";
import { GOOD, isDoubtful, qualityWords } from "./quality.ts";

/** Items that are remembered; of more only some are told of. */
const MAX_ITEMS = 1000;
const NAMED = 3;

/** Items whose last value the server doubts, or that somebody has overridden: what people should know although there are values. */
export class Doubts {
  readonly #items = new Map<string, number>();

  /** Of each reading; `quality` of one without a value is not doubted: its fault says enough. */
  note(item: string, quality: number): void {
    if (quality === GOOD || !isDoubtful(quality) || (quality & 0x40) === 0) {
      if (this.#items.size > 0) this.#items.delete(item);
    } else if (this.#items.size < MAX_ITEMS || this.#items.has(item)) this.#items.set(item, quality);
  }

  /** A sentence for each quality. */
  warnings(): readonly Warning[] {
    const byQuality = Map.groupBy(this.#items, ([, quality]) => quality);
    return [...byQuality].map(([quality, items]) => {
      const names = items.slice(0, NAMED).map(([item]) => quote(item).slice(1, -1));
      const more = items.length > NAMED ? ` and ${items.length - NAMED} more` : "";
      return warning("quality_doubtful", `${qualityWords(quality)}: ${names.join(", ")}${more}`, qualityWords(quality));
    });
  }
}
