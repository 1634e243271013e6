import { expect, test } from "vitest";
import { hashOf } from "./content.ts";
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
