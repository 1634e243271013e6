import { expect, test } from "vitest";
import { plant, running, source, variable } from "../../test/support/agent.ts";
import { LocalRequestError } from "./local-socket.ts";
import { lookInto } from "./look-into.ts";

test("values are kept while somebody looks, each digit of them, with the raw one beside a scaled one", async () => {
  const holding = new Map([0, 65_535, 65_535, 65_535, 65_535, 235].entries());
  const device = await plant({ units: new Map([[1, { holding }]]) });
  const { agent } = running();
  const variables = [
    variable(1, 1, "holding:1", { type: "uint64" }),
    variable(1, 2, "holding:5", { scaling: { factor: 0.1, offset: 0 }, unit: "°C" }),
    variable(1, 3, "holding:99"),
  ];
  await agent.apply([source(1, device.port, { variables })]);
  await expect.poll(() => agent.reports()[0]?.counters.readouts).toBeGreaterThan(0);
  expect(lookInto(agent, { source: "machine-1" }).readout).toBeNull();
  const look = (more: object) => lookInto(agent, { source: "machine-1", ...more }).readout;
  await expect.poll(() => look({})?.values.map(({ quality }) => quality)).toEqual(["good", "good", "bad"]);
  expect(look({})?.values[0]).toMatchObject({ value: "18446744073709551615", raw: null, type: "uint64" });
  expect(look({ filter: "V2" })).toMatchObject({ more: 0, values: [{ name: "v2", value: "23.5", raw: "235", unit: "°C" }] });
  expect(look({ variable: "v3" })?.values).toMatchObject([{ name: "v3", value: null, fault: "not_found" }]);
  expect(look({ variable: "v" })?.values).toEqual([]);
});

test("what cannot be meant is refused, with the sources that there are", async () => {
  const { agent } = running();
  await agent.apply([source(1, 1, { record: { ...source(1, 1).record, details: null } })]);
  expect(lookInto(agent, { source: "machine-1" })).toMatchObject({
    plan: null,
    readout: null,
    source: { error: { condition: "details_missing" } },
  });
  expect(() => lookInto(agent, { source: "x\u001b" })).toThrow(
    new LocalRequestError('the service reads no data source "x\\u001b"; it reads machine-1'),
  );
  for (const wrong of [undefined, {}, { source: 1 }, { source: "" }, { source: "a", more: 1 }])
    expect(() => lookInto(agent, wrong)).toThrow("expected {source");
});
