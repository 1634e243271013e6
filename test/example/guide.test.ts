import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";

const DOC = path.resolve(import.meta.dirname, "../../docs/write-a-driver.md");
const EXAMPLE = path.join(import.meta.dirname, "gauge");

/** The lines of a file between `// cut: <name>` and the next `// cut: end`. */
function cut(file: string, name: string): string {
  const lines = readFileSync(path.join(EXAMPLE, file), "utf8").split("\n");
  const start = lines.indexOf(`// cut: ${name}`);
  const end = lines.indexOf("// cut: end", start);
  if (start < 0 || end < 0) throw new Error(`${file} has no part ${name}`);
  return lines.slice(start + 1, end).join("\n");
}

it("docs/write-a-driver.md shows the example as it is compiled and tested", async () => {
  const page = readFileSync(DOC, "utf8");
  const bare = page.replaceAll(/(<!-- cut: .* -->)\n\n```ts\n[\s\S]*?\n```\n/g, "$1\n");
  expect(bare).not.toContain("```ts");
  const shown = bare.replaceAll(
    /<!-- cut: (\S+) (\S+) -->\n/g,
    (mark, file: string, name: string) => `${mark}\n\`\`\`ts\n${cut(file, name)}\n\`\`\`\n`,
  );
  expect(shown.match(/```ts/g)).toHaveLength(6);
  // `-u` writes it.
  await expect(shown).toMatchFileSnapshot(DOC);
});
