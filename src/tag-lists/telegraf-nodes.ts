import type { TagEntry } from "./format.ts";
import { type JsonObject, objectsIn, textOf } from "./json-text.ts";
import { hasEnvironment, IN_ENVIRONMENT, joined } from "./telegraf-text.ts";

/** The fields of one instance of inputs.s7comm: their addresses name their types, as `DB1.R4`. */
export function* inputsS7comm(instance: JsonObject, device: string): Generator<TagEntry> {
  for (const metric of objectsIn(instance["metric"]))
    for (const field of objectsIn(metric["fields"])) {
      const name = joined(textOf(metric["name"]), textOf(field["name"]));
      const address = textOf(field["address"]);
      const at = { device, place: `${device}, ${name}` };
      if (hasEnvironment(name, address)) yield { ...at, name, problem: IN_ENVIRONMENT };
      else yield { ...at, tag: { name, address } };
    }
}

/** The nodes of one instance of inputs.opcua or inputs.opcua_listener, and of their groups. */
export function* inputsOpcua(instance: JsonObject, device: string): Generator<TagEntry> {
  for (const node of objectsIn(instance["nodes"])) yield nodeEntry(node, {}, device);
  for (const group of objectsIn(instance["group"])) for (const node of objectsIn(group["nodes"])) yield nodeEntry(node, group, device);
  for (const events of objectsIn(instance["events"]))
    for (const node of objectsIn(events["node_ids"])) {
      const address = idOf(node, {});
      yield { device, place: `${device}, events`, name: address, problem: "is a source of events, which is not read" };
    }
}

function nodeEntry(node: JsonObject, group: JsonObject, device: string): TagEntry {
  const name = joined(textOf(group["name"]), textOf(node["name"]));
  const address = idOf(node, group);
  const at = { device, place: `${device}, ${name}` };
  if (hasEnvironment(name, address)) return { ...at, name, problem: IN_ENVIRONMENT };
  if (/^ns=;|;=|=$/.test(address)) return { ...at, name, problem: "it lacks its namespace, its identifier_type or its identifier" };
  return { ...at, tag: { name, address } };
}

/** `ns=3;s=Temperature`; a part that is missing is empty. */
function idOf(node: JsonObject, group: JsonObject): string {
  const field = (key: string): string => textOf(node[key]) || textOf(group[key]);
  const uri = textOf(node["namespace_uri"]) || (textOf(node["namespace"]) === "" ? textOf(group["namespace_uri"]) : "");
  const namespace = uri === "" ? `ns=${field("namespace")}` : `nsu=${uri}`;
  return textOf(node["id"]) || `${namespace};${field("identifier_type")}=${textOf(node["identifier"])}`;
}
