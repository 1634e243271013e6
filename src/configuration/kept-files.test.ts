import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type FileStamp, stampOf } from "./file-stamp.ts";
import { KeptFiles } from "./kept-files.ts";

const PRESS = "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11";
const OVEN = "1c6d2fae-7b63-4a8f-8b54-2f1d3f2e5b22";

let folder: string;
let copies: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "collector-kept-files-"));
  copies = join(folder, "kept", "last-good");
});
afterEach(() => rmSync(folder, { recursive: true }));

const stamp = (path: string): FileStamp => stampOf(path) ?? { text: "", modifiedMs: 0, changedMs: 0, bytes: 0 };
/** A file as it was taken. */
const taken = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return { path, stamp: stamp(path) };
};
const keep = async (kept: KeptFiles, source: string, file: ReturnType<typeof taken>) => {
  kept.keep(source, file);
  await kept.write(() => false);
};
const textOf = async (kept: KeptFiles, source: string) => {
  const path = await kept.pathOf(source);
  return path === undefined ? undefined : readFileSync(path, "utf8");
};

test("a copy is there for the next process, for its owner alone, and another format takes its place", async () => {
  const kept = new KeptFiles(copies);
  expect(await kept.pathOf(PRESS)).toBeUndefined();
  await keep(kept, PRESS, taken("press.CSV", "name;address\n"));
  expect(await textOf(new KeptFiles(copies), PRESS)).toBe("name;address\n");
  expect(statSync(join(copies, `${PRESS}.csv`)).mode & 0o777).toBe(0o600);
  await keep(kept, PRESS, taken("press.yaml", "[]"));
  expect(readdirSync(copies)).toEqual([`${PRESS}.yaml`]);
  expect(await textOf(kept, PRESS)).toBe("[]");
});

test("what is kept already is not written again, in this process or the next", async () => {
  const file = taken("press.csv", "name;address\n");
  utimesSync(file.path, 1.234, 1_700_000_000.567);
  const then = { ...file, stamp: stamp(file.path) };
  const kept = new KeptFiles(copies);
  await keep(kept, PRESS, then);
  const { ino } = statSync(join(copies, `${PRESS}.csv`));
  await keep(kept, PRESS, then);
  await keep(new KeptFiles(copies), PRESS, then);
  expect(statSync(join(copies, `${PRESS}.csv`)).ino).toBe(ino);
  // Of the same length and time, in a process that knows what it has copied.
  writeFileSync(file.path, "address;name\n");
  utimesSync(file.path, 1.234, 1_700_000_000.567);
  await keep(kept, PRESS, { ...file, stamp: stamp(file.path) });
  expect(await textOf(kept, PRESS)).toBe("address;name\n");
});

test("a file that has changed since it was taken is not copied: it comes again", async () => {
  const kept = new KeptFiles(copies);
  const file = taken("press.csv", "name;address\n");
  taken("press.csv", "");
  await keep(kept, PRESS, file);
  expect([await kept.pathOf(PRESS), kept.problemOf(PRESS)]).toEqual([undefined, undefined]);
});

test("what the disk does not take is a problem of the source until it does", async () => {
  mkdirSync(join(folder, "kept"));
  writeFileSync(copies, "");
  const kept = new KeptFiles(copies);
  await keep(kept, PRESS, taken("press.csv", "name;address\n"));
  expect(kept.problemOf(PRESS)).toMatch(/^its variables cannot be kept for the next start: /);
  rmSync(copies);
  await keep(kept, PRESS, taken("press.csv", "name;address\n"));
  expect([kept.problemOf(PRESS), await textOf(kept, PRESS)]).toEqual([undefined, "name;address\n"]);
});

test("all copies together have a bound", async () => {
  const kept = new KeptFiles(copies, 30);
  await keep(kept, PRESS, taken("press.csv", "name;address\na;b\n"));
  await keep(kept, OVEN, taken("oven.csv", "name;address\na;b\n"));
  expect([kept.problemOf(PRESS), kept.problemOf(OVEN)]).toEqual([undefined, expect.stringContaining("together")]);
  // Its own copy does not count.
  await keep(kept, PRESS, taken("press.csv", "name;address\nlonger;than before\n".slice(0, 30)));
  expect(kept.problemOf(PRESS)).toBeUndefined();
});

test("the copies that are over the time wait for the next look", async () => {
  const kept = new KeptFiles(copies);
  kept.keep(PRESS, taken("press.csv", "a\n"));
  kept.keep(OVEN, taken("oven.csv", "b\n"));
  await kept.write(() => true);
  expect([await textOf(kept, PRESS), await textOf(kept, OVEN)]).toEqual(["a\n", undefined]);
  await kept.write(() => true);
  expect(await textOf(kept, OVEN)).toBe("b\n");
});

test("only the copies of the sources that have a file stay", async () => {
  const kept = new KeptFiles(copies);
  await keep(kept, PRESS, taken("press.csv", "a\n"));
  await keep(kept, OVEN, taken("oven.csv", "b\n"));
  await kept.retain(new Set([OVEN]));
  expect(readdirSync(copies)).toEqual([`${OVEN}.csv`]);
  await keep(kept, PRESS, taken("press.csv", "a\n"));
  await new KeptFiles(copies).retain(new Set([PRESS]));
  expect(readdirSync(copies)).toEqual([`${PRESS}.csv`]);
});

test("of two copies of a source the later one counts, and what is no copy is left alone", async () => {
  mkdirSync(copies, { recursive: true });
  writeFileSync(join(copies, "notes.txt"), "");
  writeFileSync(join(copies, `${PRESS}.csv`), "old");
  chmodSync(join(copies, `${PRESS}.csv`), 0o600);
  await new Promise((done) => setTimeout(done, 20));
  writeFileSync(join(copies, `${PRESS}.yaml`), "new");
  const kept = new KeptFiles(copies);
  expect(await textOf(kept, PRESS)).toBe("new");
  await kept.retain(new Set());
  expect(existsSync(join(copies, "notes.txt"))).toBe(true);
});

test("without a folder nothing is kept", async () => {
  const kept = new KeptFiles(undefined);
  await keep(kept, PRESS, taken("press.csv", "a\n"));
  await kept.retain(new Set());
  expect(await kept.pathOf(PRESS)).toBeUndefined();
});
