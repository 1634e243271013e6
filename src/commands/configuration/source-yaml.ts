import { Document, visit } from "yaml";
import { escapeInLines } from "../../base/plain-text.ts";
import type { DataSource } from "../../model/resources.ts";

type Machines = readonly { readonly uuid: string; readonly name: string | null }[];

/** Data sources as `source import` takes them: without variables and secrets. Pure. */
export const sourceEntries = (sources: readonly DataSource[], machines: Machines): readonly object[] =>
  sources.map((source) => ({
    name: source.name,
    machine: machines.find(({ uuid }) => uuid === source.machine)?.name ?? source.machine,
    manufacturer: source.manufacturer,
    device_model: source.device_model,
    note: source.note,
    ...(source.readout_interval !== null && { readout_interval: source.readout_interval }),
    readout_limit: source.readout_limit,
    details: source.details,
  }));

export const sourceYaml = (sources: readonly DataSource[], machines: Machines): string => safeYaml(sourceEntries(sources, machines));

/** YAML in which texts with what steers a terminal, hides or reorders are quoted and hold it as `\uXXXX`, which is the same value. */
export function safeYaml(entries: readonly object[]): string {
  const document = new Document(entries);
  visit(document, {
    Scalar: (_key, node) => {
      if (typeof node.value === "string" && escapeInLines(node.value) !== node.value) node.type = "QUOTE_DOUBLE";
    },
  });
  return escapeInLines(document.toString());
}
