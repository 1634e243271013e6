import { existsSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

/** Most words of a page, by where it lies: a page that is longer has two subjects. */
const BOUNDS: readonly { readonly pages: string; readonly words: number }[] = [
  { pages: "README.md", words: 1400 },
  { pages: "docs/design/*.md", words: 1500 },
  { pages: "docs/guide/*.md", words: 1500 },
];
/** Most characters of a line of prose; a line of a table is one row, and as long as that. */
const LINE = 800;

const PAGES = globSync(["*.md", "docs/**/*.md", "drivers/*/README.md", "src/**/README.md", "gateway/README.md"]);

/** Words as `wc -w` counts them. */
const wordsOf = (text: string): number => text.split(/\s+/).filter((word) => word !== "").length;

/** Names of the headings as GitHub makes anchors of them. */
const anchorsOf = (markdown: string): readonly string[] =>
  [...markdown.matchAll(/^#+ +(.*)$/gm)].map(([, heading = ""]) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );

/** Links of a page that lead nowhere, as they are written. */
function brokenLinks(page: string, markdown: string): readonly string[] {
  const prose = markdown.replaceAll(/```.*?```/gs, "").replaceAll(/`[^`\n]*`/g, "");
  return [...prose.matchAll(/\]\(([^)\s]+)\)|\bsrc="([^"]+)"/g)]
    .map(([, link, source]) => link ?? source ?? "")
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [file = "", anchor] = link.split("#");
      const target = file === "" ? page : path.join(path.dirname(page), file);
      if (!existsSync(target)) return true;
      return anchor !== undefined && !anchorsOf(readFileSync(target, "utf8")).includes(anchor);
    })
    .map((link) => `${page}: ${link}`);
}

describe("the documents", () => {
  it.each(BOUNDS)("$pages: at most $words words a page", ({ pages, words }) => {
    const files = globSync(pages);
    expect(files.length).toBeGreaterThan(0);
    const long = files.map((file) => ({ file, words: wordsOf(readFileSync(file, "utf8")) })).filter((page) => page.words > words);
    expect(long).toEqual([]);
  });

  it("design and guide have no lines that nobody can read", () => {
    const long = globSync(["README.md", "docs/design/*.md", "docs/guide/*.md"]).flatMap((file) =>
      readFileSync(file, "utf8")
        .split("\n")
        .flatMap((line, at) => (line.length > LINE && !line.startsWith("|") ? [`${file}:${at + 1}`] : [])),
    );
    expect(long).toEqual([]);
  });

  it("each link leads to a file, and to a heading of it", () => {
    expect(PAGES.length).toBeGreaterThan(30);
    expect(PAGES.flatMap((page) => brokenLinks(page, readFileSync(page, "utf8")))).toEqual([]);
  });

  it.each(["[a](nowhere.md)", "[a](README.md#no-such-heading)", '<img src="nowhere.png">'])("would find %s", (text) =>
    expect(brokenLinks("README.md", text)).toHaveLength(1),
  );
});
