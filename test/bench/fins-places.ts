/** Words of D that the FINS bench reads, and what they hold. */
export const LAYOUTS = ["adjacent", "blocks", "scattered", "mixed"] as const;
export type LayoutName = (typeof LAYOUTS)[number];

const WORDS = 1000;
const AREA_WORDS = 32_768;

/** Numbers from 0 to below 1, the same in every process. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Different words, in no order, until there are so many of them. */
function anyWords(words: Set<number>, count: number, next: () => number): readonly number[] {
  while (words.size < count) words.add(next());
  return [...words];
}

/**
 * Addresses of 1,000 words. `adjacent`: one behind the other; `blocks`: 4 blocks of 250, far apart; `scattered`: anywhere; `mixed`: 700
 * in 2 dense stretches with holes, the others anywhere.
 */
export function placesOf(layout: LayoutName, seed = 1): readonly number[] {
  const random = seeded(seed);
  const anywhere = () => Math.floor(random() * AREA_WORDS);
  if (layout === "adjacent") return Array.from({ length: WORDS }, (_, i) => i);
  if (layout === "blocks") return Array.from({ length: WORDS }, (_, i) => Math.floor(i / 250) * 5000 + (i % 250));
  if (layout === "scattered") return anyWords(new Set(), WORDS, anywhere);
  const dense = new Set<number>();
  anyWords(dense, 700, () => Math.floor(random() * 2) * 9000 + Math.floor(random() * 600));
  return anyWords(dense, WORDS, anywhere);
}

export const valueAt = (word: number): number => (word * 7 + 13) & 0xffff;

/**
 * The fewest requests that bring these words of one area: for each number of ranges, the most words that so many can hold (a sum over
 * sorted words, exact), and the rest in lists.
 */
export function fewestRequests(places: readonly number[], maxWords: number, maxItems: number): number {
  const words = [...places].sort((a, b) => a - b);
  const n = words.length;
  /** First word that a range which ends with word i can begin with. */
  const first = words.map((word) => words.findIndex((other) => word - other < maxWords));
  let most: readonly number[] = Array.from({ length: n + 1 }, () => 0);
  let fewest = Math.ceil(n / maxItems);
  for (let ranges = 1; ranges < fewest; ranges++) {
    const next = [0];
    for (let i = 0; i < n; i++) {
      const begin = first[i] ?? i;
      next.push(Math.max(next[i] ?? 0, (most[begin] ?? 0) + i + 1 - begin));
    }
    most = next;
    fewest = Math.min(fewest, ranges + Math.ceil((n - (most[n] ?? 0)) / maxItems));
  }
  return fewest;
}
