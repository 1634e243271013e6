import { describe, expect, it, test } from "vitest";
import { plainLayout } from "../../buffer/testing/readouts.ts";
import type { Layout } from "../../model/layout.ts";
import type { SourceReport } from "../../model/report.ts";
import { codesOf, textsOf } from "../../model/testing/warnings.ts";
import { TopicOwners } from "./topic-owners.ts";
import { collisionHint, dataTopic, isOwnTopic, parseTopic } from "./topics.ts";

/** Variables by name, whose uuids are of source and name. */
const layoutOf = (source: string, ...names: readonly string[]): Layout => {
  const layout = plainLayout(names.length, { scalar: "uint32" }, source);
  return {
    ...layout,
    variables: layout.variables.map((variable, i) => ({ ...variable, uuid: `${source}/${names[i]}`, name: names[i] ?? "" })),
  };
};
const reportOf = (layout: Layout): SourceReport => ({ layout }) as SourceReport;

test.each([
  ["plant/values", undefined],
  ["plant/{source}", undefined],
  ["{source}", undefined],
  ["plant/{source}/{variable}", undefined],
  ["{variable}/of/{source}", undefined],
  ["{source}/{source}/{variable}", undefined],
  ["plant/{source}-{variable}", /a \/ between/],
  ["plant/{source}{variable}", /a \/ between/],
  ["{source}/{variable}.{source}", /a \/ between/],
  ["plant/{variable}", /\{source\} into/],
])("%s: whether names may make one topic twice", (template, words) => {
  const hint = collisionHint(parseTopic(template));
  if (words) expect(hint).toMatch(words);
  else expect(hint).toBeUndefined();
});

test.each([
  ["plant/st{source}", "atus", true],
  ["plant/{source}us", "stat", true],
  ["plant/{source}", "status", false],
  ["plant/{source}", "status/x", false],
  ["plant/line-{source}", "status", false],
  ["status", "x", false],
])("%s of the source %s is a topic of the collector's own: %s", (template, source, isOwn) => {
  const plan = parseTopic(template);
  expect(isOwnTopic(plan, dataTopic(plan, { name: source }, ""))).toBe(isOwn);
});

describe("TopicOwners", () => {
  const plan = parseTopic("plant/{source}-{variable}");
  const [first, second] = [layoutOf("a", "b-c"), layoutOf("a-b", "c", "d")];
  const claim = (owners: TopicOwners, layout: Layout, place: number) =>
    owners.claim(plan, dataTopic(plan, layout.source, layout.variables[place]?.name ?? ""), layout, place);

  it("leaves a topic to the variable that had it first, and names both", () => {
    const owners = new TopicOwners();
    expect(claim(owners, first, 0)).toBeUndefined();
    expect(claim(owners, second, 0)).toMatch(/^plant\/a-b-c, the topic of c of a-b, is that of b-c of a; put a \/ between/);
    expect(claim(owners, second, 1)).toBeUndefined();
    expect(claim(owners, first, 0)).toBeUndefined();
  });

  it("frees it when that variable is gone or has another name, and says that something has changed", () => {
    const owners = new TopicOwners();
    claim(owners, first, 0);
    owners.describe([reportOf(first), reportOf(second)]);
    expect(claim(owners, second, 0)).toMatch(/is that of b-c of a/);
    const { changes } = owners;
    owners.describe([reportOf(layoutOf("a", "x")), reportOf(second)]);
    expect(owners.changes).toBeGreaterThan(changes);
    expect(claim(owners, second, 0)).toBeUndefined();
    expect(claim(owners, first, 0)).toMatch(/is that of c of a-b/);
  });

  it("leaves the topic of a name to the data source that had it first, says so of the other, and frees it", () => {
    const twin = (layout: Layout): Layout => ({ ...layout, source: { uuid: "twin", name: layout.source.name } });
    const named = (layout: Layout) => ({ ...reportOf(layout), ...layout.source });
    const [press, other] = [layoutOf("press", "b", "a"), twin(layoutOf("press", "b", "c"))];
    for (const [template, isRefused] of [
      ["plant/{source}", [true, true]],
      ["plant/{source}/{variable}", [true, false]],
      ["plant/values", [false, false]],
    ] as const) {
      const one = parseTopic(template);
      const owners = new TopicOwners();
      const refusals = (layout: Layout) =>
        [0, 1].map((place) => owners.claim(one, dataTopic(one, { name: "press" }, layout.variables[place]?.name ?? ""), layout, place));
      // Of sources that nobody has described, or that are configured no more, nothing is refused.
      expect(refusals(other)).toEqual([undefined, undefined]);
      owners.describe([named(press)]);
      expect(refusals(other)).toEqual([undefined, undefined]);
      owners.describe([named(press), named(other)]);
      expect(refusals(other).map((refusal) => refusal !== undefined)).toEqual(isRefused);
      expect(refusals(press)).toEqual([undefined, undefined]);
      if (isRefused[0])
        expect(refusals(other)[0]).toMatch(/ \(twin\), is that of another data source of this name \(source-press\); rename one$/);
      expect([press, other].map(({ source }) => owners.ownsName(source))).toEqual([true, false]);
      expect(codesOf(owners.warnings(one))).toContain("names_shared");
      expect(textsOf(owners.warnings(one))).toEqual([
        expect.stringMatching(/^the data sources source-press and twin are both named press: /),
      ]);
      const { changes } = owners;
      owners.describe([named({ ...press, source: { ...press.source, name: "press-1" } }), named(other)]);
      expect(owners.changes).toBeGreaterThan(changes);
      expect(refusals(other)).toEqual([undefined, undefined]);
      expect(textsOf(owners.warnings(one))).toEqual([]);
    }
  });

  it("keeps nothing of a template that keeps its topics apart", () => {
    const owners = new TopicOwners();
    const apart = parseTopic("plant/{source}/{variable}");
    expect(owners.claim(apart, "plant/a/b", first, 0)).toBeUndefined();
    expect(owners.claim(apart, "plant/a/b", second, 0)).toBeUndefined();
  });
});
