import { expect, test } from "vitest";
import { source } from "../../test/support/agent.ts";
import type { SourceInput } from "../agent/source-spec.ts";
import type { SinkSpec } from "../delivery/messages.ts";
import { changesOf } from "./changes.ts";

const noYield = async () => {};
const state = (sources: readonly SourceInput[], sinks: readonly SinkSpec[] = []) => ({ sources, sinks });
const DETAILS = { type: "mqtt", host: "a", password: { type: "configured" } };
const sink: SinkSpec = {
  uuid: "s1",
  name: "broker",
  type: "mqtt",
  details: DETAILS,
  settings: {},
  secrets: {},
  publishIntervalUnit: "seconds",
};
const changed = (input: SourceInput, record: object, more: Partial<SourceInput> = {}): SourceInput => ({
  ...input,
  ...more,
  record: { ...input.record, ...record },
});

test("each change has the name of what it concerns, and its old and new value", async () => {
  const [one, two, three] = [source(1, 502), source(2, 502), source(3, 502)];
  const [variable] = one.variables;
  if (!variable) throw new Error("no variable");
  const more = [1, 2, 3].map((n) => ({ ...variable, uuid: `00000000-0000-4000-8000-00000000010${n}`, name: `v${n}` }));
  const now = [
    changed(
      one,
      { name: "left", readout_interval: 5, details: { ...(one.record.details as object), host: "10.0.0.9" } },
      { variables: more },
    ),
    changed(two, {}, { variables: two.variables.map((each) => ({ ...each, address: "holding:9" })), secrets: { password: "canary" } }),
    source(4, 502),
  ];
  const { clauses, changes } = await changesOf(
    state([one, two, three], [sink]),
    state(now, [
      { ...sink, details: { ...DETAILS, host: "b", password: { type: "none" } }, secrets: { password: "canary" } },
      { ...sink, uuid: "s2", name: null },
    ]),
    noYield,
  );
  expect(clauses).toEqual([
    "added machine-4",
    "removed machine-3",
    "added the data sink s2",
    "machine-1: renamed to left, interval 50 ms → 5 ms, host 127.0.0.1 → 10.0.0.9, variables +3 −2",
    "machine-2: secret, variables ~2",
    "broker: host a → b, password, secret",
  ]);
  expect(changes.map(({ about, text, before, after }) => [about, before ?? text, after])).toEqual([
    ["machine-4", "added the data source", undefined],
    ["machine-3", "removed the data source", undefined],
    ["s2", "added the data sink", undefined],
    ["machine-1", "machine-1", "left"],
    ["machine-1", "50 ms", "5 ms"],
    ["machine-1", "127.0.0.1", "10.0.0.9"],
    ["machine-1", "variables +3 −2", undefined],
    ["machine-1/v1", "added the variable", undefined],
    ["machine-1/v2", "added the variable", undefined],
    ["machine-1/v3", "added the variable", undefined],
    ["machine-1/v1", "removed the variable", undefined],
    ["machine-1/v2", "removed the variable", undefined],
    ["machine-2", "secret", undefined],
    ["machine-2", "variables ~2", undefined],
    ["machine-2/v1", "holding:0", "holding:9"],
    ["machine-2/v2", "holding:1", "holding:9"],
    ["broker", "a", "b"],
    ["broker", "password", undefined],
    ["broker", "secret", undefined],
  ]);
  expect(JSON.stringify([clauses, changes])).not.toContain("canary");
});

test("a URL appears without its password, also where it is cut", async () => {
  const url = `opc.tcp://user:canary-${"x".repeat(200)}@host:4840`;
  const one = source(1, 502);
  const now = changed(one, { details: { ...(one.record.details as object), host: url } });
  const { clauses, changes } = await changesOf(state([one]), state([now]), noYield);
  expect(changes).toHaveLength(1);
  expect(JSON.stringify([clauses, changes])).not.toMatch(/canary|user/);
});

test("unchanged records have no name in the changes, and of many only some do", async () => {
  const many = Array.from({ length: 200 }, (_, i) => source(i + 1, 502));
  expect(await changesOf(state(many), state(many.map((input) => ({ ...input }))), noYield)).toEqual({ clauses: [], changes: [] });
  const slower = many.map((input) => changed(input, { readout_interval: 77 }));
  const { clauses, changes } = await changesOf(state(many), state(slower), noYield);
  expect([clauses.length, changes.length]).toEqual([11, 100]);
  expect(clauses.at(-1)).toBe("190 more have changed");
  expect((await changesOf(state([]), state(many), noYield)).clauses).toEqual([expect.stringMatching(/^added machine-1, .* and 190 more$/)]);
});
