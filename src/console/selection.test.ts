import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ToldSource } from "../service/page/told.ts";
import { type SortKey, selected } from "./selection.ts";

const LEVELS = ["ok", "note", "bad", "none"] as const;

const source = (name: string, level: ToldSource["level"] = "ok", since = "2026-11-20T09:00:00.000Z"): ToldSource => ({
  uuid: name,
  name,
  path: `/sources/${name}`,
  type: "s7",
  endpoint: `${name}.example:102`,
  intervalMs: 1000,
  variables: 1,
  level,
  state: level,
  since,
  trouble: null,
  faults: [],
  moreFaults: 0,
  faultSteps: [],
  notes: [],
  moreNotes: 0,
});

const namesOf = (sources: readonly ToldSource[]): readonly string[] => sources.map(({ name }) => name);
const ALL = { filter: "", isFailing: false, key: null, isDown: false } as const;

describe("which sources the list shows", () => {
  it("those in trouble first, each kind in the order of the configuration", () => {
    const sources = [source("b"), source("z", "note"), source("c", "bad"), source("a"), source("y", "note")];
    expect(namesOf(selected(sources, ALL))).toEqual(["c", "z", "y", "b", "a"]);
    expect(namesOf(selected(sources, { ...ALL, isFailing: true }))).toEqual(["c", "z", "y"]);
  });

  it("names with numbers in their order", () => {
    const sources = ["press-10", "Press-2", "press-1"].map((name) => source(name));
    expect(namesOf(selected(sources, { ...ALL, key: "name" }))).toEqual(["press-1", "Press-2", "press-10"]);
    expect(namesOf(selected(sources, { ...ALL, key: "name", isDown: true }))).toEqual(["press-10", "Press-2", "press-1"]);
  });

  it("the youngest state first", () => {
    const sources = [source("old"), source("new", "ok", "2026-11-21T09:00:00.000Z")];
    expect(namesOf(selected(sources, { ...ALL, key: "since" }))).toEqual(["new", "old"]);
  });

  it("each source that fits exactly once, whatever the order (property)", () => {
    const keys: readonly (SortKey | null)[] = [null, "name", "state", "since", "type"];
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(fc.string({ minLength: 1, maxLength: 6 }), fc.constantFrom(...LEVELS)), { selector: ([name]) => name }),
        fc.constantFrom(...keys),
        fc.boolean(),
        fc.string({ maxLength: 2 }),
        (given, key, isDown, filter) => {
          const sources = given.map(([name, level]) => source(name, level));
          const fits = ({ name, type, endpoint }: ToldSource): boolean =>
            [name, type, endpoint ?? "", `${name} ${type} ${endpoint}`].some((text) => text.toLowerCase().includes(filter.toLowerCase()));
          const shown = selected(sources, { filter, isFailing: false, key, isDown });
          expect(namesOf(shown).toSorted()).toEqual(namesOf(sources.filter(fits)).toSorted());
        },
      ),
    );
  });
});
