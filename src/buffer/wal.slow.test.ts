import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openReader } from "./reader.ts";
import { A, append, batch, expectExact, open } from "./testing/file.ts";
import { memoryFolder } from "./testing/folder.ts";
import { firstDamagedFrame, mendWal } from "./wal.ts";

const FRAME = 4120;
const HEADER = 32;

/** A file as a process leaves it that was killed, with some transactions in its WAL. */
function killed(folder: string): string {
  const alive = join(folder, "alive", "buffer.db");
  const left = join(folder, "left");
  mkdirSync(left);
  using buffer = open(alive);
  buffer.setSinks([A]);
  for (let seq = 1; seq <= 60; seq += 10) append(buffer, ...Array.from({ length: 10 }, (_, i) => batch(seq + i)));
  for (const name of readdirSync(join(folder, "alive"))) copyFileSync(join(folder, "alive", name), join(left, name));
  return join(left, "buffer.db");
}

const flip = (file: string, ...places: readonly number[]): void => {
  const bytes = readFileSync(file);
  for (const place of places) bytes[place >> 3] = (bytes[place >> 3] ?? 0) ^ (1 << (place & 7));
  writeFileSync(file, bytes);
};

it("makes of any one flipped bit what was written, or a page that holds up none behind it", () => {
  using folder = memoryFolder();
  const wal = `${killed(folder.path)}-wal`;
  const whole = readFileSync(wal);
  const { length } = whole;
  const frames = (length - HEADER) / FRAME;
  const commits = Array.from({ length: frames }, (_, i) => HEADER + i * FRAME).filter((at) => whole.readUInt32BE(at + 4) !== 0);
  const lastTransaction = (commits.at(-2) ?? 0) + FRAME;
  let right = 0;
  const bits = [
    ...Array.from({ length: 8 * 24 }, (_, bit) => 8 * HEADER + bit),
    ...Array.from({ length: 600 }, (_, i) => 8 * HEADER + ((i * 7919 * 13) % (8 * (length - HEADER - FRAME)))),
  ];
  for (const bit of bits) {
    writeFileSync(wal, whole);
    flip(wal, bit);
    const { bits: mended, frames: kept } = mendWal(wal);
    const now = readFileSync(wal);
    expect(firstDamagedFrame(now), `bit ${bit}`).toBeUndefined();
    if (bit >= 8 * lastTransaction) {
      // Nothing tells it from what a power failure leaves, but for what the checksum tells.
      expect(mended + kept, `bit ${bit}`).toBe(0);
      expect(now.subarray(0, lastTransaction).equals(whole.subarray(0, lastTransaction)), `bit ${bit}`).toBe(true);
      if (now.equals(whole)) right++;
      continue;
    }
    expect(mended + kept, `bit ${bit}`).toBe(1);
    if (mended === 1) {
      right++;
      expect(now.equals(whole), `bit ${bit}`).toBe(true);
      continue;
    }
    // Pages are those that were written, but for the one.
    const pageOf = (bytes: Buffer, frame: number): Buffer => bytes.subarray(HEADER + frame * FRAME + 24, HEADER + (frame + 1) * FRAME);
    const different = Array.from({ length: frames }, (_, i) => i).filter((i) => !pageOf(now, i).equals(pageOf(whole, i)));
    expect(different.length, `bit ${bit}`).toBeLessThanOrEqual(1);
  }
  expect(right / bits.length).toBeGreaterThan(0.5);
});

it("fault: a page of the last transaction that a power failure left half written is taken for what was written", () => {
  using folder = memoryFolder();
  const wal = `${killed(folder.path)}-wal`;
  const whole = readFileSync(wal);
  const ends = Array.from({ length: (whole.length - HEADER) / FRAME }, (_, i) => HEADER + i * FRAME).filter(
    (at) => whole.readUInt32BE(at + 4) !== 0,
  );
  const first = (ends.at(-2) ?? 0) + FRAME;
  expect(ends.at(-1)).toBeGreaterThan(first);
  for (let at = first; at + FRAME < whole.length; at += FRAME) {
    const torn = Buffer.from(whole).fill(0, at + 24 + 512, at + 24 + 2048);
    writeFileSync(wal, torn);
    expect(mendWal(wal)).toEqual({ bits: 0, frames: 0 });
    expect(readFileSync(wal).equals(torn)).toBe(true);
  }
});

it("leaves what no frame behind confirms, and the end that a power failure leaves", () => {
  using folder = memoryFolder();
  const wal = `${killed(folder.path)}-wal`;
  const frames = (statSync(wal).size - HEADER) / FRAME;
  const last = HEADER + (frames - 1) * FRAME;
  flip(wal, 8 * (last + 500), 8 * (last + 501) + 3);
  const damaged = readFileSync(wal);
  expect(mendWal(wal)).toEqual({ bits: 0, frames: 0 });
  truncateSync(wal, statSync(wal).size - 1000);
  expect(mendWal(wal)).toEqual({ bits: 0, frames: 0 });
  expect(readFileSync(wal).equals(damaged.subarray(0, damaged.length - 1000))).toBe(true);
});

it("loses nothing behind one flipped bit, or one in each of two frames", () => {
  using folder = memoryFolder();
  const file = killed(folder.path);
  flip(`${file}-wal`, 8 * (HEADER + 2 * FRAME + 1000), 8 * (HEADER + 9 * FRAME + 76));
  const alarms: string[] = [];
  using buffer = open(file, { onAlarm: ({ text }) => alarms.push(text) });
  expect(alarms).toEqual([expect.stringMatching(/buffer\.db-wal was damaged: 2 wrong bit\(s\) were put right; the disk/)]);
  const reader = openReader(file);
  expect(reader.read(0, 1000, 2 ** 30).map(({ id }) => id)).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
  reader.close();
  expect(buffer.ledger().lost).toBeNull();
  expectExact(buffer, file);
});

it("loses what is on a page, and nothing behind it, where a whole byte of its frame is wrong", () => {
  using folder = memoryFolder();
  const original = killed(folder.path);
  const whole = readFileSync(`${original}-wal`);
  let lost = 0;
  for (let frame = 1; frame < (whole.length - HEADER) / FRAME - 1; frame += 6) {
    const file = join(folder.path, `${frame}`, "buffer.db");
    mkdirSync(join(folder.path, `${frame}`));
    for (const name of readdirSync(join(folder.path, "left")))
      copyFileSync(join(folder.path, "left", name), join(folder.path, `${frame}`, name));
    const at = 8 * (HEADER + frame * FRAME + 24 + 4000);
    flip(`${file}-wal`, ...Array.from({ length: 8 }, (_, bit) => at + bit));
    const alarms: string[] = [];
    using buffer = open(file, { onAlarm: ({ text }) => alarms.push(text) });
    expect(alarms[0]).toMatch(/buffer\.db-wal was damaged: 1 damaged page\(s\) in it cost what they hold/);
    expect(buffer.ledger().lost, `frame ${frame}`).toBeNull();
    const reader = openReader(file);
    const rows = reader.read(0, 1000, 2 ** 30);
    reader.close();
    expect(rows.at(-1)?.id, `frame ${frame}`).toBe(60);
    lost += 60 - rows.filter(({ payload }) => payload.length > 0).length;
    expectExact(buffer, file);
  }
  expect(lost).toBeLessThan(60);
});
