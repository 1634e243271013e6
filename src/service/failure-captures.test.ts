import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Ring, recordIn, ringMemory } from "../lib/capture/ring.ts";
import { silentLog } from "../model/context.ts";
import type { SourceFrames } from "../model/wire.ts";
import { type FailureCaptureOptions, FailureCaptures } from "./failure-captures.ts";

const HOUR_MS = 3_600_000;

function here(more: Partial<FailureCaptureOptions> = {}, dir?: string) {
  const stateDir = dir ?? mkdtempSync(path.join(os.tmpdir(), "collector-captures-"));
  if (dir === undefined) onTestFinished(() => rmSync(stateDir, { recursive: true, force: true }));
  const folder = path.join(stateDir, "captures");
  const lines: string[] = [];
  const time = { ms: 0 };
  const captures = new FailureCaptures({
    folder,
    maxBytes: 1 << 20,
    version: "1.0.0",
    clock: { epochMs: () => Date.UTC(2026, 0, 2, 3, 4, 5) + time.ms, monotonicMs: () => time.ms },
    log: { ...silentLog, warn: (_: object, message: string) => void lines.push(message) },
    freeBytes: async () => 2 ** 40,
    ...more,
  });
  return { stateDir, folder, captures, time, lines, names: () => readdirSync(folder).sort() };
}

function framesOf(name: string, bytes = 10): SourceFrames {
  const memory = ringMemory(1 << 16);
  const trace = new Ring(memory).opening({ transport: "tcp", address: "10.0.0.9", port: 502 });
  trace.data("out", Buffer.alloc(bytes));
  return {
    uuid: `uuid of ${name}`,
    name,
    type: "modbus_tcp",
    standardPort: 502,
    bytes: 1 << 16,
    record: recordIn(memory),
    words: new Map(),
  };
}

it("writes once for a reason, for its owner alone, and names the file", async () => {
  const { captures, names, folder, time } = here();
  let looks = 0;
  const fail = (why: string) =>
    captures.failed("uuid of press 1/ü", why, () => {
      looks++;
      return framesOf("press 1/ü");
    });
  fail("TIMEOUT");
  time.ms += 60_000;
  fail("TIMEOUT");
  await captures.idle();
  expect(names()).toEqual(["press_1_-20260102T030405Z.pcapng"]);
  const file = path.join(folder, "press_1_-20260102T030405Z.pcapng");
  expect([statSync(file).mode & 0o777, statSync(folder).mode & 0o777]).toEqual([0o600, 0o700]);
  expect(readFileSync(file).subarray(0, 4)).toEqual(Buffer.of(0x0a, 0x0d, 0x0d, 0x0a));
  expect(captures.of("uuid of press 1/ü", "press 1/ü")).toEqual({ file, at: "2026-01-02T03:04:05.000Z" });
  expect(captures.of("uuid of another", "another")).toBeUndefined();
  fail("CONNECTION_RESET");
  await captures.idle();
  time.ms += HOUR_MS;
  fail("CONNECTION_RESET");
  await captures.idle();
  expect(names()).toHaveLength(3);
  expect(looks).toBe(3);
});

it("keeps the newest within its bounds, and forgets what has gone", async () => {
  const { captures, names, time, folder } = here({ maxBytes: 5000 });
  for (let i = 0; i < 5; i++) {
    time.ms += 60_000;
    captures.failed(`uuid of ${i}`, "TIMEOUT", () => ({ ...framesOf(`${i}`, 1000), uuid: `uuid of ${i}` }));
    await captures.idle();
  }
  expect(names().map((name) => name[0])).toEqual(["2", "3", "4"]);
  expect(names().reduce((sum, name) => sum + statSync(path.join(folder, name)).size, 0)).toBeLessThanOrEqual(5000);
  expect(captures.of("uuid of 0", "0")).toBeUndefined();
  expect(captures.of("uuid of 4", "4")?.file).toContain("4-");
});

it("writes nothing of a source that nothing was exchanged with", async () => {
  const { captures, stateDir } = here();
  const frames = framesOf("a");
  const events = frames.record.events.filter(({ kind }) => kind !== "data");
  captures.failed("a", "CONNECTION_REFUSED", () => ({ ...frames, record: { ...frames.record, events } }));
  captures.failed("a", "CONNECTION_REFUSED", () => undefined);
  await captures.idle();
  expect(readdirSync(stateDir)).toEqual([]);
});

it("writes ten a minute where many fail at once", async () => {
  const { captures, names } = here();
  let looks = 0;
  for (let i = 0; i < 1000; i++)
    captures.failed(`uuid of ${i}`, "TIMEOUT", () => {
      looks++;
      return framesOf(`source-${i}`);
    });
  await captures.idle();
  expect([names().length, looks]).toEqual([10, 10]);
});

it.each([
  ["no room is given to it", { maxBytes: 0 }, undefined],
  ["the disk is nearly full", { freeBytes: async () => 1000 }, "less than 128 MiB are free"],
  ["the file would be larger than all", { maxBytes: 100 }, "more than captures.files_bytes"],
])("writes nothing where %s, and says so once", async (_, more, words) => {
  const { captures, stateDir, lines } = here(more);
  captures.failed("a", "TIMEOUT", () => framesOf("a"));
  captures.failed("a", "TIMEOUT", () => framesOf("a"));
  await captures.idle();
  expect(readdirSync(stateDir)).toEqual([]);
  expect(lines).toEqual(words === undefined ? [] : [expect.stringContaining(words)]);
});

it("knows the files of an earlier run, and removes what that left half", async () => {
  const first = here();
  first.captures.failed("a", "TIMEOUT", () => framesOf("press-1"));
  await first.captures.idle();
  writeFileSync(path.join(first.folder, "press-2-20260102T030405Z.pcapng.new"), "half");
  writeFileSync(path.join(first.folder, "notes.txt"), "of a person");
  const next = here({}, first.stateDir);
  await next.captures.idle();
  expect(next.names()).toEqual(["notes.txt", "press-1-20260102T030405Z.pcapng"]);
  expect(next.captures.of("a", "press-1")?.file).toBe(path.join(first.folder, "press-1-20260102T030405Z.pcapng"));
});

it("says what stands in the way, and goes on when that has gone", async () => {
  const { captures, folder, stateDir, lines, names, time } = here();
  await captures.idle();
  writeFileSync(folder, "a file in its place");
  captures.failed("a", "TIMEOUT", () => framesOf("a"));
  captures.failed("b", "TIMEOUT", () => framesOf("b"));
  await captures.idle();
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain("was not written");
  rmSync(folder);
  mkdirSync(stateDir, { recursive: true });
  time.ms += 60_000;
  captures.failed("a", "TIMEOUT", () => framesOf("a"));
  await captures.idle();
  expect(names()).toHaveLength(1);
});
