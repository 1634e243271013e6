import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { asideFiles, type Recovered } from "./recover.ts";
import { Recovery } from "./recovery.ts";
import { batch, layouts } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";

const LOOK_MS = 10_000;

let folder: ReturnType<typeof temporaryFolder>;
let file: string;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"], now: LOOK_MS });
  folder = temporaryFolder();
  file = join(folder.path, "buffer.db");
  writeFileSync(`${file}.recover-damaged-20270115T080000Z`, "whatever is in it");
});
afterEach(() => {
  vi.useRealTimers();
  folder[Symbol.dispose]();
});

/** Known by its time. */
const part = (time: number): Recovered => ({ layouts, batches: [{ ...batch(time), time }] });
const VALUES = 8;

/** Times of what the buffer has taken, and what is said; `takes` may be changed. */
function recovery(read: () => Generator<Recovered>) {
  const said: string[] = [];
  const found = { said, stored: [] as number[], takes: true, look };
  const one = new Recovery(file, { alarm: ({ text }) => said.push(text), note: (message) => said.push(message), taken: () => {} }, read);
  function look(): void {
    one.step(({ batches }) => {
      if (!found.takes) return undefined;
      found.stored.push(...batches.map(({ time }) => time));
      // As what is handed on to another thread.
      for (const { payload } of batches) structuredClone(payload, { transfer: [payload.buffer as ArrayBuffer] });
      return batches.length * VALUES;
    });
    vi.advanceTimersByTime(LOOK_MS);
  }
  return found;
}

function* parts(...times: number[]): Generator<Recovered> {
  for (const time of times) yield part(time);
}

test("what the buffer does not take at a moment comes once it does, and nothing of before comes twice", () => {
  let refuses = 2;
  const found = recovery(function* () {
    yield part(1);
    found.takes = refuses-- <= 0;
    yield part(2);
    yield part(3);
  });
  found.look();
  expect([found.stored, found.said]).toEqual([[1], []]);
  found.look();
  found.takes = true;
  found.look();
  expect(found.stored).toEqual([1, 2, 3]);
  expect(found.said.at(-1)).toMatch(/^24 values of .* were recovered, and are delivered/);
});

test("an error in the middle ends it with what was read: it does not come again and again", () => {
  const found = recovery(function* () {
    yield part(1);
    throw new Error("EIO: i/o error, read");
  });
  for (let look = 0; look < 3; look++) found.look();
  expect(found.stored).toEqual([1]);
  expect(found.said).toEqual([expect.stringMatching(/^8 values of .*; the rest of it cannot be read: EIO: i\/o error, read$/)]);
  expect(asideFiles(file).map(({ state }) => state)).toEqual(["recovered"]);
});

test("an error before anything was read is tried again", () => {
  let failures = 1;
  const found = recovery(function* () {
    if (failures-- > 0) throw new Error("EMFILE: too many open files");
    yield* parts(1, 2);
  });
  found.look();
  expect(found.said).toEqual([expect.stringMatching(/cannot be recovered now: EMFILE.*the collector tries again$/)]);
  found.look();
  expect(found.stored).toEqual([1, 2]);
});

test("where its name cannot be changed only that is tried again", () => {
  const found = recovery(() => parts(1, 2));
  const target = `${file}.recovered-damaged-20270115T080000Z`;
  mkdirSync(join(target, "in the way"), { recursive: true });
  found.look();
  found.look();
  expect(found.stored).toEqual([1, 2]);
  expect(found.said).toHaveLength(1);
  rmSync(target, { recursive: true });
  found.look();
  expect(found.stored).toEqual([1, 2]);
  expect(found.said.at(-1)).toMatch(/^16 values/);
  expect(existsSync(target)).toBe(true);
});

test("says how far it has come while it lasts", () => {
  writeFileSync(`${file}.recover-damaged-20270115T080000Z`, Buffer.alloc(100 * 1024));
  const found = recovery(function* () {
    for (let seq = 1; seq <= 4; seq++) {
      vi.advanceTimersByTime(200);
      yield { layouts, batches: Array.from({ length: 1000 }, () => batch(seq)) };
    }
  });
  for (let look = 0; look < 3; look++) found.look();
  expect(found.said[0]).toMatch(/^8000 values of .* have been recovered so far, about [1-9]\d? % of the file$/);
  expect(found.said[1]).toMatch(/^16000 values/);
});
