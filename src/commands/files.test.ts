import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../api/server/testing.ts";
import { readIn, writeOut, writeTo } from "./files.ts";
import { UsageError } from "./io.ts";
import { commandIo } from "./testing.ts";

test("what goes to no file goes to stdout", () => {
  const file = join(temporaryFolder(), "out");
  let out = "";
  const io = commandIo({ onOut: (text) => (out += text) });
  writeOut(io, undefined, "a");
  writeOut(io, "-", "b");
  writeOut(io, file, "c");
  expect([out, readFileSync(file, "utf8")]).toEqual(["ab", "c"]);
});

test("a file that cannot be read or written is named, with why", () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "inner"));
  writeFileSync(join(folder, "long"), "12345");
  const words = (work: () => unknown): string => {
    try {
      work();
    } catch (error) {
      expect(error).toBeInstanceOf(UsageError);
      return (error as UsageError).message;
    }
    throw new Error("nothing was thrown");
  };
  expect(words(() => readIn(join(folder, "no"), 9))).toBe(`${folder}/no does not exist`);
  expect(words(() => readIn(join(folder, "long"), 4))).toContain("longer than 4 bytes");
  expect(words(() => writeTo(join(folder, "no", "x"), ""))).toBe(`${folder}/no/x cannot be written: there is no folder ${folder}/no`);
  expect(words(() => writeTo(join(folder, "inner"), ""))).toBe(`${folder}/inner cannot be written: it is a folder; name a file in it`);
});
