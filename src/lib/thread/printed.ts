/** Characters of one line that a library prints which are kept. */
export const MAX_PRINTED = 300;

const METHODS = ["log", "info", "warn", "error", "debug", "trace", "dir", "table"] as const;

/**
 * Takes what this thread prints with `console`, which of ours is nothing: libraries print what devices and clients sent, as often as they
 * send it. `report` gets each call as one line of at most MAX_PRINTED characters. Errors show their message, other objects only what they are.
 */
export function capturePrinted(report: (words: string) => void): void {
  const take = (...words: readonly unknown[]): void => report(printedWords(words));
  for (const method of METHODS) console[method] = take;
}

/** One line of what was to be printed. Pure. */
export function printedWords(words: readonly unknown[]): string {
  let line = "";
  for (const word of words) {
    if (line.length >= MAX_PRINTED) break;
    line += `${line === "" ? "" : " "}${wordOf(word).slice(0, MAX_PRINTED)}`;
  }
  return line.slice(0, MAX_PRINTED);
}

/** Only what is text already: objects of a library show more than is wanted, and cost more than they are worth. */
function wordOf(word: unknown): string {
  if (typeof word === "string") return word;
  if (typeof word === "number" || typeof word === "boolean" || typeof word === "bigint") return String(word);
  return word instanceof Error ? word.message : typeof word;
}
