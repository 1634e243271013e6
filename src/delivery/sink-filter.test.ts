import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import type { StoredBatch } from "../buffer/buffer.ts";
import { encodeReadout } from "../buffer/codec.ts";
import { layoutAndReadout, plainLayout } from "../buffer/testing/readouts.ts";
import type { Layout } from "../model/layout.ts";
import type { FilterPatterns, SourceReport } from "../model/report.ts";
import { copyReadout } from "../sinks/sink.ts";
import { decodeJob } from "./decode.ts";
import { filterShape, SinkFilter } from "./sink-filter.ts";

const [temperature, pressure, state] = ["°C", "bar", null];
const layoutOf = (source: string, ...variables: readonly (readonly [string, string | null])[]): Layout => ({
  source: { uuid: `uuid of ${source}`, name: source },
  variables: variables.map(([name, unit]) => ({ ...(plainLayout(1).variables[0] as Layout["variables"][number]), name, unit })),
});
const press = layoutOf("press-1", ["zone_1", temperature], ["zone_2", temperature], ["hold", pressure], ["state", state]);
const namesOf = (layout: Layout, settings: FilterPatterns): readonly string[] | "all" | "nothing" => {
  const filtered = new SinkFilter(settings).of(layout);
  if (filtered === undefined) return "all";
  return filtered === null ? "nothing" : filtered.layout.variables.map(({ name }) => name);
};

describe("a filter", () => {
  it.for<[FilterPatterns, readonly string[] | "all" | "nothing"]>([
    [{}, "all"],
    [{ sources: ["press-1"] }, ["zone_1", "zone_2", "hold", "state"]],
    [{ sources: ["uuid of press-1"] }, ["zone_1", "zone_2", "hold", "state"]],
    [{ sources: ["press"] }, "nothing"],
    [{ sources: ["press-*", "!press-1"] }, "nothing"],
    [{ sources: ["!press-2"], variables: ["zone_*"] }, ["zone_1", "zone_2"]],
    [{ variables: ["*", "!zone_1"] }, ["zone_2", "hold", "state"]],
    [{ variables: ["!zone_*"] }, ["hold", "state"]],
    [{ variables: ["zone_2", "hold"] }, ["zone_2", "hold"]],
    [{ variables: ["zone"] }, "nothing"],
    [{ units: ["°C"] }, ["zone_1", "zone_2"]],
    [{ units: ["!°C"] }, ["hold", "state"]],
    [{ units: ["*"] }, ["zone_1", "zone_2", "hold"]],
    [{ units: ["bar", "°C"], variables: ["*_1", "hold"] }, ["zone_1", "hold"]],
  ])("%j takes %j", ([settings, names]) => {
    expect(namesOf(press, settings)).toEqual(names);
  });

  it("tells a sink of the sources and variables that it takes, with the same layout each time", () => {
    const report = (layout: Layout | null, name: string): SourceReport =>
      ({ uuid: `uuid of ${name}`, name, layout }) as unknown as SourceReport;
    const all = [report(press, "press-1"), report(null, "press-2"), report(layoutOf("mill", ["zone_1", null]), "mill")];
    const filter = new SinkFilter({ sources: ["press-*"], variables: ["hold"] });
    expect(filter.sources(all).map(({ name, layout }) => [name, layout?.variables.map((one) => one.name)])).toEqual([
      ["press-1", ["hold"]],
      ["press-2", undefined],
    ]);
    expect(filter.sources(all)[0]?.layout).toBe(filter.of(press)?.layout);
  });

  it("warns of a name that matches nothing, once all variables are known", () => {
    const report = (layout: Layout | null): SourceReport => ({ ...layout?.source, layout }) as unknown as SourceReport;
    const filter = new SinkFilter({ sources: ["press-*", "mill", "!saw"], variables: ["zone_*", "hold"] });
    expect(filter.warning([report(press), report(null)])).toBeUndefined();
    expect(filter.warning([report(press)])).toMatchObject({
      code: "filter_matches_nothing",
      text: expect.stringContaining('"sources: mill"'),
    });
    expect(filter.warning([report(press), report(layoutOf("mill", ["a", null]))])).toBeUndefined();
  });
});

/** Readouts as the sink gets them, and the outcome. */
function decoded(layout: Layout, row: StoredBatch, settings: FilterPatterns, takesExploration: boolean) {
  const filter = new SinkFilter(settings);
  const names = { startOf: () => "start", life: "life" };
  const { batch, outcomes } = decodeJob({ group: { layout: 1, rows: [row], bytes: 0 }, backlog: false }, layout, {
    takesExploration,
    filter,
    names,
  });
  return { readouts: Array.from(batch?.readouts ?? [], copyReadout), batch, outcome: outcomes[0] };
}

it("gives a sink just the readings that it takes, and counts the others, of any readout", () => {
  fc.assert(
    fc.property(layoutAndReadout, fc.boolean(), fc.func(fc.boolean()), ({ layout, readout }, takesExploration, isTaken) => {
      const taken = layout.variables.flatMap((one, place) => (isTaken(place) ? { ...one, place } : []));
      const row = { id: 1, layout: 1, time: readout.time, ...encodeReadout(layout, readout) };
      const all = decoded(layout, row, {}, takesExploration);
      const some = decoded(
        layout,
        row,
        { variables: ["!*", ...taken.map(({ name }) => name)].slice(1).concat(taken.length === 0 ? ["none of them"] : []) },
        takesExploration,
      );
      const isCounted = (place: number) =>
        readout.readings[place] !== undefined && (takesExploration || layout.variables[place]?.exploration === false);
      const expected = taken.map(({ place }) => all.readouts[0]?.readings[place]);
      const isEmpty = expected.every((reading) => reading === undefined);
      expect(some.readouts.map(({ readings }) => readings)).toEqual(isEmpty ? [] : [expected]);
      const delivered = taken.filter(({ place }) => isCounted(place)).length;
      expect([some.outcome?.delivered, (some.outcome?.filtered ?? 0) + delivered]).toEqual([delivered, all.outcome?.delivered]);
      if (some.batch && taken.length < layout.variables.length) expect(some.batch.id).not.toBe(all.batch?.id);
    }),
  );
});

it("keeps what is unchanged of what the sink takes", () => {
  const layout = plainLayout(4);
  const readout = {
    time: 1000,
    spanMs: 1,
    clockSynced: true,
    readings: [undefined, { quality: "good" as const, value: 7 }, undefined, undefined],
    unchanged: Uint8Array.of(1, 0, 1, 0),
  };
  const row = { id: 1, layout: 1, time: 1000, ...encodeReadout(layout, readout) };
  const [first = "", second = "", third = "", fourth = ""] = layout.variables.map(({ name }) => name);
  const seen = (...variables: readonly string[]) =>
    decoded(layout, row, { variables }, false).readouts.map(({ readings, unchanged }) => [
      readings.map((one) => one?.quality),
      [...(unchanged ?? [])],
    ]);
  expect(seen(first, second)).toEqual([
    [
      [undefined, "good"],
      [1, 0],
    ],
  ]);
  expect(seen(third)).toEqual([[[undefined], [1]]]);
  expect(seen(fourth)).toEqual([]);
});

it("refuses what would mean nothing, or would keep readouts waiting", () => {
  const isTaken = (sources: readonly string[]) => z.object(filterShape).safeParse({ sources }).success;
  expect([[], [""], ["!"], Array.from({ length: 51 }, (_, i) => `*${i}`), Array.from({ length: 1001 }, String)].map(isTaken)).toEqual(
    Array.from({ length: 5 }, () => false),
  );
  expect([["!a"], ["*"], Array.from({ length: 1000 }, String)].map(isTaken)).toEqual([true, true, true]);
});
