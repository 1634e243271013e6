import { UsageError } from "./io.ts";

/** The values of an option that is repeated as NAME=VALUE. Throws UsageError. */
export const pairsOf = (option: string, words: readonly string[] = []): Readonly<Record<string, string>> =>
  Object.fromEntries(
    words.map((word) => {
      const at = word.indexOf("=");
      if (at < 1) throw new UsageError(`${option} ${word}: expected NAME=VALUE`);
      return [word.slice(0, at), word.slice(at + 1)];
    }),
  );
