import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { PageBuffers } from "./page-buffers.ts";

const answer = () => new EventEmitter();

const records = (...names: readonly string[]): string[] => names.map((name) => JSON.stringify({ name }));

test.each([
  ["none", []],
  ["one", ["a"]],
  ["several, in every script", ["Presse 3 – größer", "プレス", "🏭", 'quo"te\\']],
  ["more than a buffer holds", Array.from({ length: 50 }, (_, n) => `${n} ${"é".repeat(2000)}`)],
  ["more than a buffer holds in UTF-8 alone", Array.from({ length: 50 }, () => "€".repeat(850))],
])("a page of %s is what JSON.stringify makes of it", (_, names) => {
  for (const next_cursor of [null, "abc"]) {
    const expected = JSON.stringify({ data: names.map((name) => ({ name })), metadata: { next_cursor } });
    expect(new PageBuffers().write({ records: records(...names), next_cursor }, answer()).toString()).toBe(expected);
  }
});

test("a buffer is used again once its page is sent, and never before; of a broken answer never", () => {
  const buffers = new PageBuffers();
  const [first, second, broken] = [answer(), answer(), answer()];
  const page = (name: string, to: EventEmitter) => buffers.write({ records: records(name), next_cursor: null }, to);
  const [a, b, c] = [page("a", first), page("b", second), page("c", broken)];
  expect(new Set([a.buffer, b.buffer, c.buffer]).size).toBe(3);
  expect([a, b, c].map((bytes) => (JSON.parse(bytes.toString()) as { data: { name: string }[] }).data[0]?.name)).toEqual(["a", "b", "c"]);
  broken.emit("close");
  second.emit("finish");
  expect(page("d", answer()).buffer).toBe(b.buffer);
  expect([a.buffer, b.buffer, c.buffer]).not.toContain(page("e", answer()).buffer);
});

test("of many pages at once few buffers are kept", () => {
  const buffers = new PageBuffers();
  const answers = Array.from({ length: 20 }, answer);
  const used = new Set(answers.map((one) => buffers.write({ records: [], next_cursor: null }, one).buffer));
  for (const one of answers) one.emit("finish");
  const again = answers.map((one) => buffers.write({ records: [], next_cursor: null }, one).buffer);
  expect(again.filter((buffer) => used.has(buffer))).toHaveLength(4);
});
