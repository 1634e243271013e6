import { expect, test } from "vitest";
import { dataSourceCreateSchema, dataSourcePatchSchema } from "../../model/resources.ts";
import { toJsonSchema } from "./fields.ts";
import { SOURCE_FIELDS, sourceValues } from "./source-fields.ts";

test("each described field is one of the API's, and those that come later are missing from its creation request", () => {
  const keys = (schema: typeof dataSourceCreateSchema | typeof dataSourcePatchSchema) => Object.keys(toJsonSchema(schema).properties ?? {});
  const fields = SOURCE_FIELDS.map(({ field }) => field);
  expect(keys(dataSourcePatchSchema)).toEqual(expect.arrayContaining(fields));
  const { later } = sourceValues({ interval: "5s", limit: "7" }, "seconds");
  const lacking = fields.filter((field) => !keys(dataSourceCreateSchema).includes(field));
  expect(Object.keys(later)).toEqual(lacking);
});

test("texts become fields of the API; an empty text and none empty a field, and one that is not given stays away", () => {
  const texts = { machine: "press", interval: "1min", limit: "none", manufacturer: "ACME", note: "" };
  expect(sourceValues(texts, "seconds")).toEqual({
    fields: { manufacturer: "ACME", note: null },
    later: { readout_interval: 60, readout_limit: null },
  });
  expect(sourceValues({ interval: "250ms", limit: "12" }, "milliseconds").later).toEqual({ readout_interval: 250, readout_limit: 12 });
});

test.each([
  [{ interval: "soon" }, "--interval soon: expected a duration above zero such as 250ms, 5s or 2min"],
  [{ interval: "1" }, "--interval 1: 1 has no unit: 1s is seconds, 1ms milliseconds, 1min minutes"],
  [{ interval: "0s" }, "--interval 0s: expected a duration above zero"],
  [{ interval: "250ms" }, "--interval 250ms: the API counts whole seconds; set interval: 250ms for this source in the settings file"],
  [{ limit: "some" }, "--limit some: expected a number of variables, or none"],
])("%j: the mistake names its option and what would be right", (texts, words) => {
  expect(() => sourceValues(texts, "seconds")).toThrow(words);
});
