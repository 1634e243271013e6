import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { NewBatch } from "./buffer.ts";
import type { BufferFile } from "./buffer-file.ts";
import { encodeReadout, layoutKey } from "./codec.ts";
import { BufferInUseError } from "./lock.ts";
import { markFile } from "./mark.ts";
import { type BufferOptions, openBuffer } from "./open.ts";
import { openReader } from "./reader.ts";
import { temporaryFolder } from "./testing/folder.ts";
import { ledgerFaults } from "./testing/ledger.ts";
import { plainLayout, plainReadout } from "./testing/readouts.ts";

const NOW = 1_800_000_000_000;
const layout = plainLayout(10);
const key = layoutKey(layout);
const A = { id: "a", takesExploration: false };

const batch = (seq: number): NewBatch => ({
  seq,
  layoutKey: key,
  time: NOW + seq,
  count: 10,
  explorationCount: 0,
  payload: encodeReadout(layout, plainReadout(10, seq)).payload,
});
const append = (buffer: BufferFile, from: number, to: number) =>
  buffer.commit({
    run: "r",
    layouts: [{ key, layout }],
    batches: Array.from({ length: to - from + 1 }, (_, i) => batch(from + i)),
    acknowledgements: [],
  });

function open(file: string, options: Partial<BufferOptions> = {}): { readonly buffer: BufferFile & Disposable; readonly alarms: string[] } {
  const alarms: string[] = [];
  const buffer = openBuffer(file, {
    maxBytes: 2 ** 30,
    maxAgeMs: 1e12,
    now: () => NOW,
    onAlarm: ({ text }) => alarms.push(text),
    ...options,
  });
  return { buffer: Object.assign(buffer, { [Symbol.dispose]: () => buffer.close() }), alarms };
}

/** What a process leaves that was killed: all files as they are while the buffer is open, the first half of it in the file, the rest in the WAL. */
function killed(folder: string): string {
  const alive = closed(join(folder, "alive"));
  const left = join(folder, "left", "buffer.db");
  mkdirSync(dirname(left));
  const { buffer } = open(alive);
  for (let seq = 2001; seq < 2400; seq += 50) append(buffer, seq, seq + 49);
  for (const name of readdirSync(dirname(alive))) copyFileSync(join(dirname(alive), name), join(dirname(left), name));
  buffer.close();
  return left;
}

function closed(folder: string): string {
  const file = join(folder, "buffer.db");
  const { buffer } = open(file);
  buffer.setSinks([A]);
  append(buffer, 1, 2000);
  buffer.close();
  return file;
}

const rowIds = (file: string): number[] => {
  const reader = openReader(file);
  const ids = reader.read(0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER).map(({ id }) => id);
  reader.close();
  return ids;
};
const lossesOf = (file: string, sink: string) => {
  const reader = openReader(file);
  const losses = reader.losses(sink);
  reader.close();
  return losses;
};
const change = (file: string, at: number, by: (bytes: Buffer) => void): void => {
  const bytes = readFileSync(file);
  by(bytes.subarray(at));
  writeFileSync(file, bytes);
};

describe("what a killed process left", () => {
  it("is taken up without a word, and its ids are not used again", () => {
    using folder = temporaryFolder();
    const file = killed(folder.path);
    const { buffer: opened, alarms } = open(file);
    using buffer = opened;
    expect(alarms).toEqual([]);
    expect(rowIds(file)).toHaveLength(2400);
    const [next] = append(buffer, 2401, 2401);
    expect(next?.id).toBeGreaterThan(4000);
    expect(ledgerFaults(buffer, file, () => false)).toEqual([]);
    expect(buffer.ledger().lost).toBeNull();
  });

  it("is no loss either where it was killed twice, the second time before it had stored anything", () => {
    using folder = temporaryFolder();
    const file = killed(folder.path);
    const again = join(folder.path, "again", "buffer.db");
    mkdirSync(dirname(again));
    {
      using buffer = open(file).buffer;
      buffer.setSinks([A, { id: "b", takesExploration: false }]);
      for (const name of readdirSync(dirname(file))) copyFileSync(join(dirname(file), name), join(dirname(again), name));
    }
    writeFileSync(markFile(again), JSON.stringify({ ...JSON.parse(readFileSync(markFile(again), "utf8")), closed: false }));
    const db = new Database(again);
    db.exec("UPDATE meta SET next_id = 2401; DELETE FROM account");
    db.close();
    rmSync(`${again}.tip`);
    const { buffer: opened, alarms } = open(again);
    using buffer = opened;
    expect(alarms).toEqual([]);
    expect(buffer.ledger().lost).toBeNull();
  });

  it("is no loss either where it began to store shortly before, after ids that were given without storing", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "alive", "buffer.db");
    const left = join(folder.path, "left", "buffer.db");
    mkdirSync(dirname(left));
    {
      using buffer = open(file).buffer;
      append(buffer, 1, 10);
      buffer.setSinks([A]);
      append(buffer, 11, 12);
      for (const name of readdirSync(dirname(file))) copyFileSync(join(dirname(file), name), join(dirname(left), name));
    }
    const { buffer: opened, alarms } = open(left);
    using buffer = opened;
    expect(alarms).toEqual([]);
    expect(buffer.ledger()).toMatchObject({ lost: null, sinks: [{ accepted: 20, pending: 20 }] });
  });

  it("takes no ranges from what is pending, however often it was killed", () => {
    using folder = temporaryFolder();
    let file = killed(folder.path);
    for (let life = 1; life <= 25; life++) {
      const { buffer: opened } = open(file);
      using buffer = opened;
      const committed = append(buffer, 2400 + 3 * life, 2402 + 3 * life);
      const ids = committed.slice(1, 2).map(({ id }) => id);
      buffer.commit({ run: "r", layouts: [], batches: [], acknowledgements: [{ sink: "a", ids, delivered: 10, dropped: {} }] });
      const next = join(folder.path, `life-${life}`, "buffer.db");
      mkdirSync(dirname(next));
      for (const name of readdirSync(dirname(file))) copyFileSync(join(dirname(file), name), join(dirname(next), name));
      file = next;
    }
    using buffer = open(file).buffer;
    let pending = rowIds(file);
    for (let step = 0; step < 200 && pending.length > 0; step++) {
      const ids = pending.slice(0, 200);
      buffer.commit({ run: "r", layouts: [], batches: [], acknowledgements: [{ sink: "a", ids, delivered: 0, dropped: {} }] });
      pending = rowIds(file);
    }
    expect(pending).toEqual([]);
    expect(buffer.ledger().sinks[0]).toMatchObject({ pending: 0 });
  });

  it("and a WAL cut at its end, as a power failure leaves it, is no damage", () => {
    using folder = temporaryFolder();
    const file = killed(folder.path);
    truncateSync(`${file}-wal`, statSync(`${file}-wal`).size - 1000);
    // What was never on disk was never said to be.
    const tip = JSON.parse(readFileSync(`${file}.tip`, "utf8"));
    writeFileSync(`${file}.tip`, JSON.stringify({ ...tip, nextId: tip.nextId - 50 }));
    const { buffer: opened, alarms } = open(file);
    using buffer = opened;
    expect(alarms).toEqual([]);
    expect(ledgerFaults(buffer, file, () => false)).toEqual([]);
  });

  it("and a mark that cannot be read is written again", () => {
    using folder = temporaryFolder();
    const file = killed(folder.path);
    writeFileSync(markFile(file), "{");
    const { buffer: opened, alarms } = open(file);
    using buffer = opened;
    expect(alarms).toEqual([]);
    append(buffer, 2401, 2401);
    expect(JSON.parse(readFileSync(markFile(file), "utf8"))).toMatchObject({ epoch: buffer.epoch, sinks: ["a"] });
  });
});

describe("what was lost with the file", () => {
  type Damage = readonly [what: string, leave: (folder: string) => string, damage: (file: string) => void];
  const remove = (file: string): void => {
    for (const name of ["", "-wal", "-shm"]) rmSync(`${file}${name}`, { force: true });
  };
  const all: readonly Damage[] = [
    ["emptied", closed, (file) => truncateSync(file, 0)],
    ["removed", closed, remove],
    ["removed after a kill", killed, remove],
    [
      "a folder",
      closed,
      (file) => {
        rmSync(file);
        mkdirSync(file);
      },
    ],
    ["not a database", closed, (file) => writeFileSync(file, "no database at all ".repeat(999))],
    ["cut in the middle of a page", closed, (file) => truncateSync(file, 3 * 4096 + 100)],
    ["cut at a page", closed, (file) => truncateSync(file, 5 * 4096)],
    [
      "the buffer of another collector",
      closed,
      (file) => {
        const other = join(dirname(file), "other", "buffer.db");
        const { buffer } = open(other);
        buffer.setSinks([A]);
        append(buffer, 1, 3);
        buffer.close();
        copyFileSync(other, file);
      },
    ],
    [
      "an older copy of itself",
      closed,
      (file) => {
        copyFileSync(file, `${file}.copy`);
        const { buffer } = open(file);
        append(buffer, 2001, 2001);
        buffer.close();
        copyFileSync(`${file}.copy`, file);
      },
    ],
    ["a frame of its WAL zeroed", killed, (file) => change(`${file}-wal`, 32 + 2 * 4120, (bytes) => bytes.fill(0, 0, 4120))],
    ["its WAL cut at rest", killed, (file) => truncateSync(`${file}-wal`, statSync(`${file}-wal`).size >> 1)],
    ["its WAL gone", killed, (file) => rmSync(`${file}-wal`)],
    ["its WAL not one", killed, (file) => change(`${file}-wal`, 0, (bytes) => bytes.fill(0x11, 0, 32))],
  ];

  const salvaged: readonly Damage[] = [
    ["a byte of its header flipped", closed, (file) => change(file, 5, (bytes) => bytes.fill(0x5a, 0, 1))],
    ["its first page zeroed", closed, (file) => change(file, 0, (bytes) => bytes.fill(0, 0, 4096))],
    ["not a database, after a kill", killed, (file) => writeFileSync(file, "no database at all ".repeat(99_999))],
    ["cut after a kill", killed, (file) => truncateSync(file, 5 * 4096)],
    ["a page zeroed", closed, (file) => change(file, 6 * 4096, (bytes) => bytes.fill(0, 0, 4096))],
    ["a byte of a page's header flipped", closed, (file) => change(file, 6 * 4096, (bytes) => bytes.fill(0x5a, 0, 1))],
  ];

  it.each(salvaged)("%s: one alarm, and what can be read goes on in a new file, the rest counted", (_, leave, damage) => {
    using folder = temporaryFolder();
    const file = leave(folder.path);
    damage(file);
    const before = JSON.parse(readFileSync(markFile(file), "utf8"));
    const { buffer: opened, alarms } = open(file);
    using buffer = opened;
    expect(alarms).toEqual([expect.stringMatching(/values that were pending in it are delivered from a new one$/)]);
    expect([buffer.epoch, buffer.ledger().lost]).toEqual([before.epoch, null]);
    expect(ledgerFaults(buffer, file, () => false)).toEqual([]);
    const [next] = append(buffer, 5000, 5000);
    expect(next?.id).toBeGreaterThanOrEqual(before.from);
  });

  it.each(all)("%s: one alarm, a new epoch that says since when, and it goes on", (_, leave, damage) => {
    using folder = temporaryFolder();
    const file = leave(folder.path);
    damage(file);
    const before = JSON.parse(readFileSync(markFile(file), "utf8"));
    {
      const { buffer: opened, alarms } = open(file);
      using buffer = opened;
      expect(alarms).toEqual([expect.stringMatching(/is not delivered(; "collector buffer list" tells what can be recovered)?$/)]);
      expect(buffer.epoch).not.toBe(before.epoch);
      expect(buffer.ledger().lost).toEqual({ since: before.oldest, why: alarms[0] });
      // Nobody has said yet that the clock is right by which the file was missed.
      const span = { from: NOW, to: before.oldest, clock: "unsynchronised" };
      expect(lossesOf(file, "a")).toEqual([{ reason: "lost", number: 1, ...span, values: null }]);
      buffer.setSinks([A]);
      const [next] = append(buffer, 5000, 5000);
      expect(next?.id).toBeGreaterThanOrEqual(before.to);
      expect(ledgerFaults(buffer, file, () => false)).toEqual([]);
    }
    // The next opening knows nothing new, and forgets nothing.
    const { buffer: again, alarms } = open(file);
    using buffer = again;
    expect(alarms).toEqual([]);
    expect(buffer.ledger().lost).toMatchObject({ since: before.oldest });
    expect(lossesOf(file, "a")).toHaveLength(1);
  });
});

describe("files set aside", () => {
  it("are never more than the buffer may be", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    for (let n = 0; n < 3; n++) {
      writeFileSync(file, "x".repeat(60_000));
      open(file, { maxBytes: 130_000, now: () => NOW + n * 1000 }).buffer.close();
    }
    expect(readdirSync(folder.path).filter((name) => name.includes("damaged"))).toHaveLength(2);
  });
});

describe("the rights of the file", () => {
  it("are for the user and the group, also of one that a version of before made", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    const rights = () =>
      readdirSync(folder.path).flatMap((name) => (/\.db(-wal|-shm)?$/.test(name) ? [statSync(join(folder.path, name)).mode & 0o777] : []));
    for (const before of [undefined, 0o644]) {
      if (before !== undefined) chmodSync(file, before);
      const { buffer } = open(file);
      expect(new Set(rights())).toEqual(new Set([0o640]));
      buffer.close();
    }
  });
});

describe("the lock", () => {
  it("keeps a second one out while the first one is open, in this process and in another", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    const first = open(file).buffer;
    expect(() => open(file)).toThrow(BufferInUseError);
    const script = `
      const { openBuffer } = await import(${JSON.stringify(new URL("./open.ts", import.meta.url).href)});
      try { openBuffer(${JSON.stringify(file)}, { maxBytes: 2 ** 30, maxAgeMs: 1e12, onAlarm() {} }).close(); console.log("open"); }
      catch (error) { console.log(error.message); }`;
    const other = (): string => spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" }).stdout.trim();
    expect(other()).toMatch(/^another collector uses the buffer .*buffer\.db\. End that one .* or give this one a state_dir of its own$/);
    first.close();
    expect(other()).toBe("open");
    open(file).buffer.close();
  });

  it("is not kept by what is in its place and no lock", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    writeFileSync(`${file}.lock`, "no lock ".repeat(200));
    open(file).buffer.close();
  });
});

describe("bounds", () => {
  const size = (seq: number, bytes: number): NewBatch => ({ ...batch(seq), payload: new Uint8Array(bytes).fill(seq | 1) });

  it("hold for the file with its WAL, also where they become smaller, and a file that was drained shrinks", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    const appendLarge = (buffer: BufferFile, from: number, to: number): void => {
      for (let seq = from; seq <= to; seq += 20) {
        const batches = Array.from({ length: 20 }, (_, i) => size(seq + i, 5000));
        buffer.commit({ run: "r", layouts: [{ key, layout }], batches, acknowledgements: [] });
      }
    };
    {
      using buffer = open(file, { maxBytes: 8 * 2 ** 20 }).buffer;
      buffer.setSinks([A]);
      appendLarge(buffer, 1, 3000);
      expect(buffer.bytes()).toBeLessThanOrEqual(8 * 2 ** 20);
      expect(buffer.bytes()).toBeGreaterThan(4 * 2 ** 20);
    }
    using buffer = open(file, { maxBytes: 2 ** 20 }).buffer;
    while (buffer.maintain());
    appendLarge(buffer, 3001, 3400);
    while (buffer.maintain());
    expect(buffer.bytes()).toBeLessThanOrEqual(2 ** 20);
    expect(ledgerFaults(buffer, file, () => false)).toEqual([]);
    const [ledger] = buffer.ledger().sinks;
    expect(lossesOf(file, "a")).toEqual([
      { reason: "buffer_full", number: 1, from: NOW + 1, to: expect.any(Number), values: ledger?.dropped.buffer_full },
    ]);
  });

  it("refuse to write where a reader without an end keeps the WAL growing, until it ends", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    using buffer = open(file, { maxBytes: 2 ** 20 }).buffer;
    buffer.setSinks([A]);
    const other = new Database(file, { readonly: true });
    other.exec("BEGIN");
    other.prepare("SELECT count(*) FROM batch").get();
    let seq = 0;
    const fillUp = (): void => {
      for (let n = 0; n < 400; n++)
        buffer.commit({ run: "r", layouts: [{ key, layout }], batches: [size(++seq, 3000)], acknowledgements: [] });
    };
    expect(fillUp).toThrow(/-wal has \d+ bytes and cannot be emptied, because another program reads the buffer/);
    expect(buffer.bytes()).toBeLessThanOrEqual(2 ** 20 + 2 ** 17);
    other.exec("COMMIT");
    other.close();
    fillUp();
    expect(buffer.bytes()).toBeLessThanOrEqual(2 ** 20);
    expect(ledgerFaults(buffer, file, () => false)).toEqual([]);
  });
});

describe("losses", () => {
  it("grow until they are acknowledged, and what comes after is a new one: each value is told once", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    let monotonicMs = 0;
    const clocks = { now: () => NOW + monotonicMs, monotonicMs: () => monotonicMs };
    const buffer = openBuffer(file, { maxBytes: 2 ** 30, maxAgeMs: 1, ...clocks, onAlarm: () => {} });
    using _ = { [Symbol.dispose]: () => buffer.close() };
    buffer.setSinks([A]);
    const drop = (from: number, to: number): void => {
      append(buffer, from, to);
      while (buffer.maintain());
      monotonicMs += 10;
      while (buffer.maintain());
    };
    const acknowledge = (number: number, values: number) =>
      buffer.commit({
        run: "r",
        layouts: [],
        batches: [],
        acknowledgements: [],
        losses: [{ sink: "a", reason: "too_old", number, values }],
      });
    drop(1, 3);
    expect(lossesOf(file, "a")).toEqual([{ reason: "too_old", number: 1, from: NOW + 1, to: NOW + 3, values: 30 }]);
    drop(4, 5);
    expect(lossesOf(file, "a")).toEqual([{ reason: "too_old", number: 1, from: NOW + 1, to: NOW + 5, values: 50 }]);
    acknowledge(1, 30);
    expect(lossesOf(file, "a")).toMatchObject([{ number: 2, to: NOW + 5, values: 20 }]);
    acknowledge(1, 30);
    acknowledge(2, 20);
    expect(lossesOf(file, "a")).toEqual([]);
    drop(6, 6);
    expect(lossesOf(file, "a")).toEqual([{ reason: "too_old", number: 3, from: NOW + 6, to: NOW + 6, values: 10 }]);
    expect(buffer.sinksWithLosses()).toEqual(["a"]);
    buffer.setSinks([]);
    expect(buffer.sinksWithLosses()).toEqual([]);
  });

  it("tell of what was damaged", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    using buffer = open(file).buffer;
    buffer.setSinks([A]);
    append(buffer, 1, 3);
    buffer.commit({
      run: "r",
      layouts: [],
      batches: [],
      acknowledgements: [{ sink: "a", ids: [2], delivered: 0, dropped: { damaged: 10 } }],
    });
    expect(lossesOf(file, "a")).toEqual([{ reason: "damaged", number: 1, from: NOW + 2, to: NOW + 2, values: 10 }]);
  });
});
