import { expect, it } from "vitest";
import { codesOf, textsOf } from "../../src/model/testing/warnings.ts";
import { AGAIN_MS, type Ask, LearnedTypes, type Told } from "./learned-types.ts";

const ENCODING = "ns=2;i=11";
const fields = (...types: readonly string[]): Told => ({
  type: "fields",
  definition: {
    structureType: 0,
    fields: types.map((dataType, i) => ({ name: `f${i}`, dataType, valueRank: -1, isOptional: false })),
  },
});

/** A store with a clock of its own, on a server that says these things. */
function learning(said: Record<string, Told>) {
  let nowMs = 0;
  const types = new LearnedTypes(() => nowMs);
  const asked: string[] = [];
  const step = (max = 100): readonly Ask[] => {
    const { asks } = types.due(max);
    types.begin(asks);
    for (const ask of asks) {
      asked.push(`${ask.about} ${ask.node}`);
      types.tell(ask, said[`${ask.about} ${ask.node}`] ?? { type: "none" });
    }
    return asks;
  };
  const learn = () => {
    types.verdictOf(ENCODING);
    while (step().length > 0);
    return types.verdictOf(ENCODING);
  };
  const later = (ms: number): void => {
    nowMs += ms;
  };
  return { types, asked, step, learn, later };
}

const MINE: Record<string, Told> = {
  [`encoding ${ENCODING}`]: { type: "node", node: "ns=2;i=10" },
  "fields ns=2;i=10": fields("ns=0;i=6", "ns=2;i=12", "ns=2;i=13"),
  "fields ns=2;i=12": fields("ns=0;i=6", "ns=2;i=10"),
  "parent ns=2;i=13": { type: "node", node: "ns=0;i=29" },
};

it("learns level by level, all of one level together, also where a structure holds itself", () => {
  const { asked, learn } = learning(MINE);
  const verdict = learn();
  expect(asked).toEqual([`encoding ${ENCODING}`, "fields ns=2;i=10", "fields ns=2;i=12", "fields ns=2;i=13", "parent ns=2;i=13"]);
  if (verdict.type !== "definition") throw new Error(verdict.type);
  const [, inner, enumeration] = verdict.definition.fields;
  expect(enumeration).toMatchObject({ type: { builtIn: 6 } });
  const nested = inner && "structure" in inner.type ? inner.type.structure : undefined;
  expect(nested?.fields[1]).toMatchObject({ type: { structure: verdict.definition } });
});

it("asks nothing twice while it is under way", () => {
  const { types } = learning(MINE);
  types.verdictOf(ENCODING);
  const { asks } = types.due(100);
  expect(asks).toHaveLength(1);
  types.begin(asks);
  expect(types.due(100).asks).toEqual([]);
  types.release(asks);
  expect(types.due(100).asks).toEqual(asks);
});

it("says how far it has come", () => {
  const { types, step } = learning(MINE);
  types.verdictOf(ENCODING);
  step();
  step();
  expect(types.verdictOf(ENCODING)).toEqual({ type: "waits", words: expect.stringContaining("2 of 4 answers so far") });
});

it("looks at what is known again after its time, and never at what the server does not have", () => {
  const { asked, learn, step, later } = learning(MINE);
  learn();
  asked.length = 0;
  later(AGAIN_MS);
  step();
  expect(asked).toEqual([`encoding ${ENCODING}`, "fields ns=2;i=10", "fields ns=2;i=12", "parent ns=2;i=13"]);
});

it("says which definitions have changed, and since when it may be", () => {
  const said = { ...MINE };
  const { types, learn, later } = learning(said);
  learn();
  later(AGAIN_MS);
  said["fields ns=2;i=12"] = fields("ns=0;i=6");
  learn();
  expect(types.takeChanges()).toMatchObject([{ node: "ns=2;i=12" }]);
  expect(types.takeChanges()).toEqual([]);
});

it.each(["refused", "failed"] as const)("asks again 30 s after it was %s, with a warning until then", (type) => {
  const said: Record<string, Told> = { ...MINE, "fields ns=2;i=12": { type, words: "BadTimeout" } };
  const { types, asked, learn, later } = learning(said);
  expect(learn().type).toBe(type === "refused" ? "bytes" : "waits");
  expect(codesOf(types.warnings())).toContain("structure_unknown");
  expect(textsOf(types.warnings())).toEqual([expect.stringContaining("BadTimeout")]);
  const { length } = asked;
  later(AGAIN_MS - 1);
  learn();
  expect(asked).toHaveLength(length);
  later(1);
  Object.assign(said, MINE);
  expect(learn().type).toBe("definition");
  expect(textsOf(types.warnings())).toEqual([]);
});

it("does not believe a definition that a value did not fit, until the server has said it again", () => {
  const { types, learn, step } = learning(MINE);
  learn();
  expect(types.doubt(ENCODING)).toBe(true);
  expect(types.verdictOf(ENCODING).type).toBe("waits");
  while (step().length > 0);
  expect(types.verdictOf(ENCODING).type).toBe("definition");
  // It is the values that are wrong.
  expect(types.doubt(ENCODING)).toBe(false);
});

it("forgets all in another run of the server, and where its models have other versions", () => {
  const { types, learn } = learning(MINE);
  types.hold("one");
  types.holdModels("1.0");
  learn();
  types.hold("one");
  expect(types.holdModels("1.0")).toBe(false);
  expect(types.verdictOf(ENCODING).type).toBe("definition");
  expect(types.holdModels("1.1")).toBe(true);
  expect(types.verdictOf(ENCODING).type).toBe("waits");
  learn();
  types.hold("two");
  expect(types.verdictOf(ENCODING).type).toBe("waits");
});

it("has a bound for what one server may define", () => {
  const { types } = learning({});
  for (let i = 0; i < 1000; i++) expect(types.verdictOf(`ns=2;i=${i}`).type).toBe("waits");
  expect(types.verdictOf("ns=2;i=1000").type).toBe("bytes");
  expect(textsOf(types.warnings())).toContainEqual(expect.stringContaining("more than 1000 structures"));
});
