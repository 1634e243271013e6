import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = path.resolve(import.meta.dirname, "../..");
const ROWS = [
  ...readFileSync(path.join(ROOT, "docs/threat-model.md"), "utf8").matchAll(/^\| (.+?) \| (.+?) \| `([^`]+)`: (.+?) \|$/gm),
].map(([, threat = "", , file = "", title = ""]) => [threat, file, title] as const);

describe("each threat names a test that there is", () => {
  it("in every row", () => {
    const lines = readFileSync(path.join(ROOT, "docs/threat-model.md"), "utf8").split("\n");
    expect(lines.filter((line) => line.startsWith("| "))).toHaveLength(ROWS.length + 2);
    expect(ROWS.length).toBeGreaterThan(20);
  });

  it.each(ROWS)("%s", (_, file, title) => {
    expect(existsSync(path.join(ROOT, file)), file).toBe(true);
    expect(readFileSync(path.join(ROOT, file), "utf8")).toContain(title);
  });
});
