import { expect, it } from "vitest";
import { unusedOptions } from "./local-options.ts";

const press = { uuid: "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11", name: "press-1" };
const unused = (entries: readonly string[], records: readonly { uuid: string; name: string | null }[] = [press]) =>
  unusedOptions("sources", "data source", Object.fromEntries(entries.map((key) => [key, {}])), records).map(
    ({ path, message }) => `${path.join(".")}: ${message}`,
  );

it("names an entry that is meant for nothing that there is, and what was meant", () => {
  expect(unused(["press-1", press.uuid, press.uuid.toUpperCase()])).toEqual([]);
  expect(unused(["pres-1"])).toEqual(["sources.pres-1: no data source of this collector has this name or uuid; did you mean press-1?"]);
  expect(unused(["oven"])).toEqual(["sources.oven: no data source of this collector has this name or uuid; there are press-1"]);
  expect(unused(["oven"], [])).toEqual(["sources.oven: no data source of this collector has this name or uuid; there is none"]);
  expect(unused(["x"], [{ uuid: press.uuid, name: null }])).toHaveLength(1);
});
