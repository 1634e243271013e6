import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { renderReference } from "./reference.ts";

test("the reference is what the routes say", () => {
  const file = join(import.meta.dirname, "../../docs/api/reference.md");
  expect(readFileSync(file, "utf8"), "run: bin/collector-node test/contract/reference.ts > docs/api/reference.md").toBe(renderReference());
});
