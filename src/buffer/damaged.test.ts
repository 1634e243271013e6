import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { openReader } from "./reader.ts";
import { A, append, batch, NOW, open } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";

describe("a damaged file", () => {
  const fill = (file: string): string => {
    using buffer = open(file);
    buffer.setSinks([A]);
    for (let seq = 1; seq <= 200; seq += 20) append(buffer, ...Array.from({ length: 20 }, (_, i) => batch(seq + i)));
    return buffer.epoch;
  };
  const damages: Record<string, (file: string) => void> = {
    "not a database": (file) => writeFileSync(file, "this is no database, whatever its name may say".repeat(100)),
    "a table missing": (file) => {
      const db = new Database(file);
      db.exec("DROP TABLE sink; DROP TABLE account");
      db.close();
    },
    "of a newer collector, and without its first page": (file) => {
      const db = new Database(file);
      const body = db.prepare<[], string>("SELECT body FROM account").pluck().get()?.replaceAll('"accepted"', '"newer":1,"accepted"') ?? "";
      db.prepare("UPDATE account SET body = ?, crc = ?").run(body, crc32(body));
      db.close();
      writeFileSync(file, Buffer.concat([Buffer.alloc(4096), readFileSync(file).subarray(4096)]));
    },
  };

  it.each(Object.entries(damages))("is set aside with an alarm, and a new one begins: %s", (_, damage) => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    const epoch = fill(file);
    damage(file);
    const alarms: string[] = [];
    {
      using buffer = open(file, { onAlarm: ({ text }) => alarms.push(text) });
      expect(buffer.epoch).not.toBe(epoch);
      expect(buffer.ledger().sinks).toEqual([]);
      buffer.setSinks([A]);
      expect(append(buffer, batch(1))).toHaveLength(1);
    }
    expect(alarms).toEqual([
      expect.stringMatching(/^the buffer .+buffer\.db is damaged \(.+\): it is kept as .+\.damaged-20270115T080000Z/),
    ]);
    expect(readdirSync(folder.path)).toContain("buffer.db.damaged-20270115T080000Z");
    using again = open(file);
    expect(again.lastSeq("r1")).toBe(1);
  });

  it("is no damage where a newer collector wrote it: it is kept as it is", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    fill(file);
    const db = new Database(file);
    db.pragma("user_version = 99");
    db.close();
    const before = readFileSync(file);
    const alarms: string[] = [];
    open(file, { onAlarm: ({ text }) => alarms.push(text) }).close();
    expect(alarms).toEqual([
      expect.stringMatching(/was written by a newer collector \(version 99 .*: it is kept as .*buffer\.db\.version-99, and/),
    ]);
    expect(readFileSync(`${file}.version-99`).equals(before)).toBe(true);
  });

  it("is no loss where a newer collector wrote it: a gap says that its values wait, at each start for people", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    fill(file);
    const db = new Database(file);
    db.pragma("user_version = 99");
    db.close();
    const alarms: string[] = [];
    {
      using buffer = open(file, { onAlarm: ({ text }) => alarms.push(text) });
      expect(buffer.ledger().lost).toBeNull();
      const reader = openReader(file);
      expect(reader.losses("a")).toEqual([expect.objectContaining({ reason: "newer_version", number: 1, values: null })]);
      reader.close();
    }
    open(file, { onAlarm: ({ text }) => alarms.push(text) }).close();
    expect(alarms).toEqual([1, 2].map(() => expect.stringMatching(/newer collector .*version-99, .*; nothing of it is lost$/)));
  });

  it("is set aside when it is a folder, or another program's database", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    const alarms: string[] = [];
    mkdirSync(file);
    open(file, { onAlarm: ({ text }) => alarms.push(text) }).close();
    const other = join(folder.path, "other.db");
    const db = new Database(other);
    db.exec("CREATE TABLE theirs (x)");
    db.close();
    open(other, { onAlarm: ({ text }) => alarms.push(text) }).close();
    expect(alarms).toEqual([expect.stringContaining("is damaged"), expect.stringContaining("it is the database of another program")]);
  });

  it("is kept for the three latest times only", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    for (let n = 0; n < 5; n++) {
      writeFileSync(file, `no database ${n}`.repeat(200));
      open(file, { now: () => NOW + n * 1000, onAlarm: () => {} }).close();
    }
    expect(readdirSync(folder.path).filter((name) => name.includes("damaged"))).toEqual([
      "buffer.db.damaged-20270115T080002Z",
      "buffer.db.damaged-20270115T080003Z",
      "buffer.db.damaged-20270115T080004Z",
    ]);
  });

  it("is not what a path is where no file can be: that is thrown", () => {
    using folder = temporaryFolder();
    writeFileSync(join(folder.path, "file"), "");
    expect(() => open(join(folder.path, "file", "buffer.db"))).toThrow(/ENOTDIR|EEXIST/);
  });
});
