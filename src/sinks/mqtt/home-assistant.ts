import type { Layout, LayoutVariable } from "../../model/layout.ts";
import type { MqttSettings } from "./settings.ts";
import { collectorStatusTopic, dataTopic, type TopicPlan } from "./topics.ts";

type Payload = MqttSettings["payload"];

const prepared = new WeakMap<Layout, { readonly plan: TopicPlan; readonly topics: ReadonlyMap<string, string> }>();

/**
 * Retained messages by topic, from which Home Assistant makes an entity for each variable of a source that has one value (MQTT discovery). Not
 * verified against Home Assistant. Pure.
 */
export function discoveryOf(plan: TopicPlan, layout: Layout, prefix: string, payload: Payload): ReadonlyMap<string, string> {
  const known = prepared.get(layout);
  if (known?.plan === plan) return known.topics;
  const topics = new Map<string, string>();
  for (const variable of layout.variables) {
    if (variable.exploration || variable.type.count !== undefined) continue;
    const component = variable.type.scalar === "bool" ? "binary_sensor" : "sensor";
    topics.set(
      `${prefix}/${component}/${layout.source.uuid}/${variable.uuid}/config`,
      JSON.stringify(entityOf(plan, layout, variable, payload)),
    );
  }
  prepared.set(layout, { plan, topics });
  return topics;
}

function entityOf(plan: TopicPlan, { source }: Layout, { uuid, name, type, unit }: LayoutVariable, payload: Payload): object {
  const isBool = type.scalar === "bool";
  const isNumber = !isBool && type.scalar !== "string";
  const template = templateOf(payload, name, isBool);
  return {
    name,
    unique_id: uuid,
    state_topic: dataTopic(plan, source, name),
    ...(template !== undefined && { value_template: template }),
    ...(isBool && payload === "raw" && { payload_on: "true", payload_off: "false" }),
    ...(unit !== null && !isBool && { unit_of_measurement: unit }),
    ...(isNumber && { state_class: "measurement" }),
    availability_topic: collectorStatusTopic(plan),
    availability_template: "{{ value_json.state }}",
    device: { identifiers: [source.uuid], name: source.name },
    origin: { name: "collector" },
  };
}

/** A message without the variable leaves its state as it is. */
function templateOf(payload: Payload, name: string, isBool: boolean): string | undefined {
  const value = expressionOf(payload, name);
  if (value === undefined) return undefined;
  if (!isBool) return `{{ ${value} | default(this.state) }}`;
  return `{% set v = ${value} | default(none) %}{{ (this.state | upper) if v == none else ('ON' if v else 'OFF') }}`;
}

/** The place of the value in a message; undefined: the payload is the value. */
function expressionOf(payload: Payload, name: string): string | undefined {
  const text = JSON.stringify(name);
  switch (payload) {
    case "raw":
      return undefined;
    case "value":
      return "value_json.value";
    case "rows":
      return `(value_json | selectattr('variable', 'eq', ${text}) | map(attribute='value') | list | last)`;
    default:
      return `(value_json.readouts | last)['values'][${text}]`;
  }
}
