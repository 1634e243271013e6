import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { formatDataType } from "../model/value.ts";
import { layoutKey } from "./layout-key.ts";
import { plainLayout } from "./testing/readouts.ts";

it.each([0, 1, 199, 200, 201, 1000])("is the digest that files of earlier versions hold, of %i variables", (count) => {
  const layout = { ...plainLayout(count), source: { uuid: "u", name: 'press "1"' } };
  const content = [
    "u",
    'press "1"',
    layout.variables.map((v) => [v.uuid, v.name, v.address, formatDataType(v.type), v.unit, v.comment, v.exploration]),
  ];
  expect(layoutKey(layout)).toBe(createHash("sha256").update(JSON.stringify(content)).digest("hex").slice(0, 32));
});
