import { expect, test } from "vitest";
import { type TagEntry, TagFile, type TagListFormat } from "./format.ts";
import { Problems } from "./problems.ts";
import { type TakeRules, take } from "./take.ts";
import { problemsOf, readList } from "./testing.ts";

const RULES: TakeRules = { type: "modbus_tcp", readAddress: (tag) => tag, yieldToEventLoop: async () => undefined };

const taken = (entries: Iterable<TagEntry>, rules: Partial<TakeRules> = {}) => {
  const format: TagListFormat = { program: "Kepware", what: "list", read: () => entries };
  return take(format, new TagFile("list", new Uint8Array()), { ...RULES, ...rules });
};
const tag = (name: string, device?: string): TagEntry => ({
  place: name,
  ...(device !== undefined && { device }),
  tag: { name, address: `holding:${name.length}` },
});

test("our own files, and anything else, are not lists of other programs", async () => {
  for (const text of ["name;address\na;holding:0\n", "", "Tag Name,Address\na,1\n", "\0\0", "TYPE,SCOPE\n", '"'.repeat(100)])
    expect(await readList(text), text).toBeUndefined();
});

test("tags of the wanted device are taken, and all devices are counted", async () => {
  const entries = [
    tag("a", "Channel1.Oven"),
    tag("b", "Channel2.Press"),
    tag("c", "Channel1.Oven"),
    { device: "Channel2.Press", note: "of the press" },
  ];
  const oven = await taken(entries, { device: "oven" });
  expect(oven?.variables.map(({ name }) => name)).toEqual(["a", "c"]);
  expect([oven?.read, oven?.notes, [...(oven?.devices ?? [])]]).toEqual([
    2,
    [],
    [
      ["Channel1.Oven", 2],
      ["Channel2.Press", 1],
    ],
  ]);
});

test("equal reasons are one problem with the places of all tags; quoted texts and numbers do not count", async () => {
  const list = await taken(
    ["a", "bb", "ccc"].map((name) => tag(name)),
    { readAddress: ({ address, name }) => (name === "ccc" ? { address: "input:1", type: null } : `"${address}" is beyond ${name.length}`) },
  );
  expect(problemsOf(list)).toEqual([["a a, bb bb", '"holding:1" is beyond 1']]);
  expect([list?.problemCount, list?.translated]).toEqual([2, { count: 1, example: { from: "holding:3", to: "input:1" } }]);
});

test("a list without an end is read to a bound", async () => {
  function* endless(make: (n: number) => TagEntry): Generator<TagEntry> {
    for (let n = 0; ; n++) yield make(n);
  }
  const tags = await taken(endless((n) => tag(`t${n}`)));
  expect(tags?.variables).toHaveLength(100_000);
  expect(problemsOf(tags)).toEqual([["undefined", expect.stringContaining("more than 100000 variables")]]);
  const others = await taken(
    endless((n) => ({ place: n, device: "other", problem: "x" })),
    { device: "d" },
  );
  expect(problemsOf(others)).toEqual([["undefined", expect.stringContaining("more than 1000000 tags")]]);
});

test("reasons and places have a bound, and all of them are counted", () => {
  const problems = new Problems();
  for (let n = 0; n < 30_000; n++) problems.add(`reason ${"y".repeat(n % 150)}`, n, "name");
  const list = problems.list();
  expect(list).toHaveLength(101);
  expect([problems.count, list.at(-1)?.count]).toEqual([30_000, 10_000]);
  expect(list.reduce((sum, { tags }) => sum + tags.length, 0)).toBe(10_000);
});
