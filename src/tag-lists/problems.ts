import type { Place } from "./format.ts";

/** Reasons that are told, and places that are kept, over all reasons. */
const MAX_REASONS = 100;
const MAX_PLACES = 10_000;

/** UTF-16 units of a sentence, and of a name: cells of any length come from outside. */
const MAX_MESSAGE = 1000;
const MAX_NAME = 300;
const clipped = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most)}…` : text);

/** One reason why tags are not taken. */
export interface Problem {
  /** The sentence for the first of them. */
  readonly message: string;
  /** Names of tags and their places, in the order of the file; the first ones where there are many. */
  readonly tags: readonly { readonly place?: Place; readonly name?: string }[];
  readonly count: number;
}

/** Reasons in the order of the file, each once: texts that differ in what they quote, and in numbers, are one. */
export class Problems {
  readonly #byReason = new Map<string, { message: string; tags: { place?: Place; name?: string }[]; count: number }>();
  #places = 0;
  /** Counts the tags of reasons beyond those that are kept. */
  #others = 0;

  add(whole: string, place?: Place, name?: string): void {
    const message = clipped(whole, MAX_MESSAGE);
    const reason = message.replace(/"(?:[^"\\]|\\.)*"/g, '"').replace(/\d+/g, "0");
    let known = this.#byReason.get(reason);
    if (!known) {
      if (this.#byReason.size >= MAX_REASONS) {
        this.#others++;
        return;
      }
      known = { message, tags: [], count: 0 };
      this.#byReason.set(reason, known);
    }
    known.count++;
    if (this.#places >= MAX_PLACES) return;
    this.#places++;
    known.tags.push({
      ...(place !== undefined && { place: typeof place === "string" ? clipped(place, MAX_NAME) : place }),
      ...(name !== undefined && { name: clipped(name, MAX_NAME) }),
    });
  }

  get count(): number {
    return [...this.#byReason.values()].reduce((sum, { count }) => sum + count, this.#others);
  }

  list(): readonly Problem[] {
    const rest = { message: "other reasons, shown once these are corrected", tags: [], count: this.#others };
    return [...this.#byReason.values(), ...(this.#others > 0 ? [rest] : [])];
  }
}
