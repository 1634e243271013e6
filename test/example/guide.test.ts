import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const DOCS = path.resolve(import.meta.dirname, "../../docs");

/** The lines of a file between `// cut: <name>` and the next `// cut: end`. */
function cut(file: string, name: string): string {
  const lines = readFileSync(path.join(import.meta.dirname, file), "utf8").split("\n");
  const start = lines.indexOf(`// cut: ${name}`);
  const end = lines.indexOf("// cut: end", start);
  if (start < 0 || end < 0) throw new Error(`${file} has no part ${name}`);
  return lines.slice(start + 1, end).join("\n");
}

test.each([
  ["write-a-driver.md", 7],
  ["write-a-sink.md", 5],
])("docs/%s shows the example as it is compiled and tested", async (name, blocks) => {
  const doc = path.join(DOCS, name);
  const page = readFileSync(doc, "utf8");
  const bare = page.replaceAll(/(<!-- cut: .* -->)\n\n```ts\n[\s\S]*?\n```\n/g, "$1\n");
  expect(bare).not.toContain("```ts");
  const shown = bare.replaceAll(
    /<!-- cut: (\S+) (\S+) -->\n/g,
    (mark, file: string, part: string) => `${mark}\n\`\`\`ts\n${cut(file, part)}\n\`\`\`\n`,
  );
  expect(shown.match(/```ts/g)).toHaveLength(blocks);
  // `-u` writes it.
  await expect(shown).toMatchFileSnapshot(doc);
});
