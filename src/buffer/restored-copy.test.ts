import { cpSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openReader } from "./reader.ts";
import { A, append, batch, open } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";

it("a buffer that is restored from a copy gives the same ids under another name, and keeps the names of those it had", () => {
  using folder = temporaryFolder();
  const [state, copy] = [join(folder.path, "state"), join(folder.path, "copy")];
  const file = join(state, "buffer.db");
  const starts = () => {
    const reader = openReader(file);
    const found = reader.starts();
    reader.close();
    return found;
  };
  const first = open(file);
  first.setSinks([A]);
  append(first, batch(1), batch(2));
  first.close();
  cpSync(state, copy, { recursive: true });
  const ofOneLife = open(file);
  const [one] = append(ofOneLife, batch(3));
  ofOneLife.close();
  const before = starts();
  cpSync(copy, state, { recursive: true, force: true });
  const ofOther = open(file);
  const [other] = append(ofOther, batch(4));
  expect(other?.id).toBe(one?.id);
  expect(before).toEqual([first.start, ofOneLife.start]);
  expect(starts()).toEqual([first.start, ofOther.start]);
  expect(ofOther.start.name).not.toBe(ofOneLife.start.name);
  ofOther.close();
});
