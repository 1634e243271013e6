/** The known word that is closest to a mistyped or unfinished one; undefined where none is close (more than a third of it differs). Pure. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const plain = normal(word);
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(plain.length / 3)) + 1;
  for (const candidate of known) {
    const d = distance(plain, normal(candidate), bestDistance);
    if (d < bestDistance) {
      best = candidate;
      bestDistance = d;
    }
  }
  return best ?? (plain.length < 3 ? undefined : known.find((candidate) => normal(candidate).startsWith(plain)));
}

const normal = (word: string): string => word.slice(0, 100).toLowerCase().replace(/[-\s]/g, "_");

/** Levenshtein; anything from `bound` on may be given as `bound`. */
function distance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) >= bound) return bound;
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? bound;
}
