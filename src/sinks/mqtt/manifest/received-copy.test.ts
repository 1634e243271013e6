import { describe, expect, test } from "vitest";
import { hashOf, hexOf } from "../../lib/proof.ts";
import { minuteHash } from "./manifest.ts";
import { ReceivedCopy } from "./received-copy.ts";

const START = Date.parse("2026-11-20T09:00:00Z");
const at = (second: number) => new Date(START + second * 1000).toISOString();
const source = { v: 1, source: "press", source_id: "uuid" };
const message = (second: number, values: object) => ({ ...source, id: `l-${second}-${second}`, readouts: [{ ts: at(second), values }] });
const statement = (hash: string | null, count = 1) => ({ ...source, minutes: [{ minute: at(0), count, first: "l-1-1", hash }] });

test("a minute whose content changed while its number stayed is not proved, and not called different", () => {
  const copy = new ReceivedCopy();
  copy.take(statement(minuteHash([[1000, hashOf("a", "good", 1)]])));
  copy.take(statement(null));
  copy.take(message(1, { a: 1 }));
  copy.take(message(1, { b: 2 }));
  expect(copy.judge({ sinceMs: START, untilMs: START + 60_000 })).toMatchObject({ findings: [], unproved: 1 });
});

test("leaves a message out whose value is nested beyond the stack, and takes the next one", () => {
  const copy = new ReceivedCopy();
  const deep: unknown = JSON.parse(`${"[".repeat(20_000)}${"]".repeat(20_000)}`);
  expect(copy.take(message(1, { a: deep }))).toBe(false);
  expect(copy.take(message(1, { a: 1 }))).toBe(true);
});

test("messages and manifests without values have a bound, too", () => {
  const readouts = Array.from({ length: 20 }, (_, i) => ({ ts: START + i, values: {} }));
  expect(() => new ReceivedCopy(10).take({ ...source, id: "l-1-1", readouts })).toThrow(RangeError);
  const copy = new ReceivedCopy(10);
  const claim = (uuid: string) => copy.take({ ...source, source_id: uuid, minutes: [] });
  expect(() => Array.from({ length: 20 }, (_, i) => claim(`uuid ${i}`))).toThrow(RangeError);
});

test("messages of ever new sources without readouts take no memory", () => {
  const copy = new ReceivedCopy();
  for (let i = 0; i < 100; i++) copy.take({ ...source, source_id: `uuid ${i}`, id: "l-1-1", readouts: [] });
  expect(copy.judge({})).toMatchObject({ without_manifest: 0 });
});

describe("rows of two sources of one name", () => {
  const row = (second: number, variable: string, value: number) => ({ source: "press", variable, ts: at(second), value, quality: "good" });
  const list = (uuid: string, seconds: readonly number[], variable: string) => ({
    ...source,
    source_id: uuid,
    minute: at(0),
    count: seconds.length,
    first: "l-1-1",
    hash: null,
    readouts: seconds.map((second) => [second * 1000, hexOf(hashOf(variable, "good", 1)), 1, "1"]),
  });
  const judged = (...rows: readonly object[]) => {
    const copy = new ReceivedCopy();
    copy.take(list("one", [1, 2], "a"));
    copy.take(list("other", [2, 3], "b"));
    copy.take(rows);
    return copy.judge({ sinceMs: START, untilMs: START + 60_000 });
  };
  test("at one time are not proved and not called different, and those of one are judged", () => {
    const good = [row(1, "a", 1), row(2, "a", 1), row(2, "b", 1), row(3, "b", 1)];
    expect(judged(...good)).toMatchObject({ findings: [], unproved: 2, unlisted: 0 });
    expect(judged(row(1, "a", 7), ...good.slice(1)).findings).toMatchObject([{ kind: "different", time: at(1) }]);
    expect(judged(...good.slice(0, 3)).findings).toMatchObject([{ kind: "missing", time: at(3) }]);
  });
});
