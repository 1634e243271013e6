import { describe, expect, test } from "vitest";
import { discoveryOf } from "./home-assistant.ts";
import { layoutOf, variableOf } from "./testing.ts";
import { parseTopic } from "./topics.ts";

const layout = layoutOf(
  variableOf('oil "temp"', "float32", { uuid: "u1", unit: "°C" }),
  variableOf("running", "bool", { uuid: "u2" }),
  variableOf("recipe", "string(20)", { uuid: "u3" }),
  variableOf("curve", "float32[10]", { uuid: "u4" }),
  variableOf("looked at", "uint16", { uuid: "u5", exploration: true }),
);

const entities = (payload: Parameters<typeof discoveryOf>[3], topic = "plant/{source}/{variable}") =>
  new Map([...discoveryOf(parseTopic(topic), layout, "homeassistant", payload)].map(([at, text]) => [at, JSON.parse(text) as object]));

describe("discovery for Home Assistant", () => {
  test("has an entity for each published variable of one value, with its unit, its topic, and whether the collector is there", () => {
    const found = entities("value");
    const node = layout.source.uuid;
    expect([...found.keys()]).toEqual([
      `homeassistant/sensor/${node}/u1/config`,
      `homeassistant/binary_sensor/${node}/u2/config`,
      `homeassistant/sensor/${node}/u3/config`,
    ]);
    expect(found.get(`homeassistant/sensor/${node}/u1/config`)).toEqual({
      name: 'oil "temp"',
      unique_id: "u1",
      state_topic: 'plant/press-1/oil "temp"',
      value_template: "{{ value_json.value | default(this.state) }}",
      unit_of_measurement: "°C",
      state_class: "measurement",
      availability_topic: "plant/status",
      availability_template: "{{ value_json.state }}",
      device: { identifiers: [node], name: "press-1" },
      origin: { name: "collector" },
    });
    expect(found.get(`homeassistant/sensor/${node}/u3/config`)).not.toHaveProperty("state_class");
  });

  test.each([
    ["raw", undefined],
    ["envelope", '{{ (value_json.readouts | last)[\'values\']["oil \\"temp\\""] | default(this.state) }}'],
    [
      "rows",
      "{{ (value_json | selectattr('variable', 'eq', \"oil \\\"temp\\\"\") | map(attribute='value') | list | last) | default(this.state) }}",
    ],
  ] as const)("says for the payload %s where the value is", (payload, template) => {
    const [first] = entities(payload, "plant/{source}").values();
    expect(first).toMatchObject({ ...(template !== undefined && { value_template: template }) });
    expect(first && "value_template" in first).toBe(template !== undefined);
  });
});
