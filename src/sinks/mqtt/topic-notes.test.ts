import fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { codesOf, textsOf } from "../../model/testing/warnings.ts";
import { TopicNotes } from "./topic-notes.ts";

let changes: number;
let notes: TopicNotes;
beforeEach(() => {
  changes = 0;
  notes = new TopicNotes(() => changes++);
});
const refuse = (topics: readonly string[], nowMs: number) => {
  for (const topic of topics) notes.refused(topic, `${topic}: no right`, nowMs);
};
const numbered = (count: number) => Array.from({ length: count }, (_, i) => `t${i}`);

test("a refused topic is tried after 10 s, then less often, a minute apart at most, and its note goes when it is taken", () => {
  refuse(["a"], 0);
  const tries: number[] = [];
  for (let s = 0; s <= 200; s++)
    if (notes.takeDue(s * 1000).has("a")) {
      tries.push(s);
      refuse(["a"], s * 1000);
    }
  expect(tries).toEqual([10, 30, 70, 130, 190]);
  expect(codesOf(notes.warnings())).toContain("topic_not_published");
  expect(textsOf(notes.warnings())).toEqual(["a: no right"]);
  expect(changes).toBe(1);
  notes.accepted("a");
  expect([textsOf(notes.warnings()), changes]).toEqual([[], 2]);
  refuse(["a"], 500_000);
  expect(notes.takeDue(510_000)).toEqual(new Set(["a"]));
});

test("of many refused topics a round tries some, by turns; once one is taken all others are tried", () => {
  const topics = numbered(50);
  refuse(topics, 0);
  const first = notes.takeDue(10_000);
  expect([...first]).toEqual(topics.slice(0, 20));
  refuse([...first], 10_000);
  const second = notes.takeDue(30_000);
  expect([...second]).toEqual(topics.slice(20, 40));
  notes.accepted("t20");
  refuse([...second].slice(1), 30_000);
  expect(notes.takeDue(30_001).size).toBe(49);
  expect(notes.takeDue(30_002).size).toBe(0);
  expect(textsOf(notes.warnings())).toHaveLength(11);
  expect(textsOf(notes.warnings()).at(-1)).toBe("nothing is published to 39 more topics of status, metadata and losses");
});

test("a note goes when its topic is not used any more; one about a size is no refusal", () => {
  refuse(["a", "b"], 0);
  notes.tooLarge("c", "c is too large");
  expect(notes.isRefused("c")).toBe(false);
  notes.keepOnly((topic) => topic !== "a");
  expect(textsOf(notes.warnings())).toEqual(["b: no right", "c is too large"]);
  expect(notes.takeDue(10_000)).toEqual(new Set(["b"]));
  notes.accepted("c");
  expect(notes.takeDue(10_001)).toEqual(new Set());
});

test("whatever is refused, taken and removed: no note is left once every topic is taken or unused, within the rounds that it needs", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(300), { maxLength: 300 }), fc.array(fc.tuple(fc.nat(300), fc.boolean())), (ids, events) => {
      const fresh = new TopicNotes(() => {});
      for (const id of ids) fresh.refused(`t${id}`, `t${id}`, 0);
      for (const [id, isTaken] of events) if (isTaken) fresh.accepted(`t${id}`);
      fresh.keepOnly((topic) => topic !== "t7");
      for (let round = 1; round <= 2; round++) for (const topic of fresh.takeDue(round * 60_000)) fresh.accepted(topic);
      expect(textsOf(fresh.warnings())).toEqual([]);
    }),
  );
});
