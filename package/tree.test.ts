import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { copyrightOf } from "./tree.ts";

const ROOT = path.resolve(import.meta.dirname, "..");

it("has the project's licence in its root, in package.json and in what the package installs, before those of others", () => {
  const licence = readFileSync(path.join(ROOT, "LICENSE"), "utf8").trim();
  expect(licence).toMatch(/^Apache License\s+Version 2\.0, January 2004/);
  expect(JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8"))).toMatchObject({ license: "Apache-2.0" });
  const text = copyrightOf([
    { name: "zod", version: "1.0.0", license: "MIT", integrity: undefined, licenseText: "Permission is hereby", part: "bundled" },
  ]);
  expect(text.indexOf(licence)).toBeGreaterThan(0);
  expect(text.indexOf("Permission is hereby")).toBeGreaterThan(text.indexOf(licence));
});
