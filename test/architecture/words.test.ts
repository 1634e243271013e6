import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

/** Words that nobody in the trade uses for what they mean here, and the word that is used instead (docs/glossary.md). */
const PRIVATE: readonly { readonly word: RegExp; readonly better: string }[] = [
  { word: /tidings/i, better: "notices" },
  { word: /way[-_ ]?out(?![a-z])/i, better: "in-flight window, or connection" },
  { word: /left[-_ ]?behind/i, better: "retained topics, or abandoned" },
  { word: /unwelcome/i, better: "suspended" },
  { word: /\bbarred\b/i, better: "suspended" },
  { word: /\blets?[-_ ]?go(es)?\b(?! on)/i, better: "release" },
  { word: /goodbye/i, better: "closing handshake" },
  { word: /breathe|breather/i, better: "yieldToEventLoop" },
  { word: /far side/i, better: "broker, server or device" },
  { word: /\banew\b/i, better: "again" },
];

const TEXT = /\.(ts|js|mjs|md|yaml|sh)$/;
const files = ["src", "drivers", "gateway", "simulators", "workbench", "docs"]
  .flatMap((top) => readdirSync(top, { recursive: true, encoding: "utf8" }).map((file) => `${top}/${file}`))
  .concat("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
  .filter((file) => TEXT.test(file));

/** Every private word, as `file:line: word (better word)`. */
function findings(file: string, text: string): readonly string[] {
  return text.split("\n").flatMap((line, i) =>
    PRIVATE.flatMap(({ word, better }) => {
      const found = word.exec(line)?.[0];
      return found === undefined ? [] : [`${file}:${i + 1}: ${found} (${better})`];
    }),
  );
}

it("no private words: code, comments and documents use the words of the trade", () => {
  expect(files.length).toBeGreaterThan(300);
  expect(files.flatMap((file) => findings(file, readFileSync(file, "utf8")))).toEqual([]);
});

it.each(["tidings", "wayOut", "way out", "left-behind", "leftBehind", "Unwelcome", "letGo", "lets go of", "createBreather", "anew"])(
  "would find %s",
  (word) => expect(findings("src/a.ts", `const x = 1; // ${word}`)).toHaveLength(1),
);

it.each(["let goal = 1", "way outside", "renewed", "embarrassed"])("takes %s", (text) => expect(findings("src/a.ts", text)).toEqual([]));
