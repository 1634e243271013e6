/** One place whose words are to be better. */
export interface Finding {
  readonly line: number;
  readonly text: string;
}

/** First words of a comment or of a test's name that leave it without a subject. */
const NO_SUBJECT = /^(?:of|as|what|whether|where|so many|the same)\b/i;

/** Words that a reader from the trade stumbles over, and what to write instead. */
export const STUMBLES: readonly { readonly pattern: RegExp; readonly better: string }[] = [
  { pattern: /(?<!there )\b(?:is|are|was) (?:no|none)\b(?! longer)/i, better: "is not" },
  { pattern: /\bnobody\b/i, better: "name who does not, or say not" },
  { pattern: /\bwho(?:so)?ever\b/i, better: "name the person or program" },
  { pattern: /\bwhat is there\b/i, better: "name the things" },
  { pattern: /\b(?:is|are) (?:told|asked)\b/i, better: "say who tells or asks whom" },
  { pattern: /\bbeside\b/i, better: "next to, in addition to" },
  { pattern: /\bby itself\b/i, better: "on its own account, or leave it out" },
  { pattern: /\bgo(?:es)? on\b/i, better: "continue" },
  { pattern: /\bcomes about\b/i, better: "is made" },
  { pattern: /\bfor ever\b/i, better: "until …" },
  { pattern: /\banew\b/i, better: "again" },
  { pattern: /\bholds? (?:it|them|\S+) for\b/i, better: "considers" },
];

/** Comments without a subject. A comment begins where a line begins with it, or behind code; its first line has its first word. Pure. */
export function commentsWithoutSubject(code: string): readonly Finding[] {
  const lines = code.split("\n");
  return lines.flatMap((text, at) => {
    const words = /^\s*\/\*\*$/.test(text) ? lines[at + 1]?.replace(/^\s*\*\s?/, "") : /(?:^|\s)(?:\/\*\*|\/\/)\s+(.*)$/.exec(text)?.[1];
    return words !== undefined && NO_SUBJECT.test(words) ? [{ line: at + 1, text: words.trim() }] : [];
  });
}

/** Names of tests that have no subject, or words to stumble over. Pure. */
export function testNames(code: string): readonly Finding[] {
  return code.split("\n").flatMap((text, at) => {
    const [, name] = /\b(?:test|it|describe)(?:\.\w+(?:\(.*?\))?)*\(\s*"([^"]+)"/.exec(text) ?? [];
    if (name === undefined) return [];
    return NO_SUBJECT.test(name) || STUMBLES.some(({ pattern }) => pattern.test(name)) ? [{ line: at + 1, text: name }] : [];
  });
}

/** Strings of two words and more with words to stumble over; comments are left out. Pure. */
export function stringsToMend(code: string): readonly Finding[] {
  return code.split("\n").flatMap((line, at) => {
    const text = line.replace(/(?:^|\s)(?:\/\/|\/\*\*|\*)\s.*$/, "");
    return [...text.matchAll(/"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g)]
      .map(([, quoted, template]) => quoted ?? template ?? "")
      .filter((words) => words.includes(" ") && STUMBLES.some(({ pattern }) => pattern.test(words)))
      .map((words) => ({ line: at + 1, text: words }));
  });
}
