import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import { nearest } from "../base/nearest.ts";
import { DETAILS, type DetailsType } from "../model/details.ts";
import { SINK_DETAILS, type SinkType } from "../model/sink-details.ts";
import { UsageError } from "./io.ts";

/** What `collector help TOPIC` prints, which a site without a network needs. */
interface Topic {
  /** In one line. */
  readonly about: string;
  /** Below the project's root; the package has it as `help/<topic>` beside the program. */
  readonly file: string;
  readonly source?: DetailsType;
  readonly sink?: SinkType;
}

const driver = (source: DetailsType, about: string): Topic => ({ about, file: `drivers/${source}/README.md`, source });

export const HELP_TOPICS: Readonly<Record<string, Topic>> = {
  modbus_tcp: driver("modbus_tcp", "data sources: Modbus TCP"),
  opcua: driver("opcua", "data sources: OPC UA"),
  s7: driver("s7", "data sources: Siemens S7"),
  s7plus: driver("s7plus", "data sources: Siemens S7plus"),
  fins: driver("fins", "data sources: Omron FINS"),
  vendor_a: driver("vendor_a", "data sources: EtherNet/IP, Logix and Micro800"),
  vendor_gateway: driver("vendor_gateway", "data sources: OPC DA and PVI through a gateway"),
  odac: driver("odac", "data sources: ODAC, by a profile or a plugin"),
  vendor_b: driver("vendor_b", "data sources: Vendor B, by a profile or a plugin"),
  plastcontrol: driver("plastcontrol", "data sources: Plastcontrol, by a profile or a plugin"),
  profiles: { about: "profiles of devices whose protocol is not public", file: "docs/profiles.md" },
  plugins: { about: "plugins: programs that read devices whose protocol is not public", file: "docs/plugin-protocol.md" },
  mqtt: { about: "data sinks: an MQTT broker, its topics and messages", file: "src/sinks/mqtt/README.md", sink: "mqtt" },
  "opcua-server": { about: "data sinks: the OPC UA server that the collector hosts", file: "src/sinks/opcua/README.md", sink: "opcua" },
  platform: { about: "data sinks: the platform", file: "src/sinks/platform/README.md", sink: "platform" },
  gateway: { about: "the protocol of vendor_gateway, for who writes a gateway", file: "docs/gateway-protocol.md" },
  settings: { about: "every key of collector.yaml", file: "config/collector.example.yaml" },
  policy: { about: "policy.yaml: where the collector may connect and listen", file: "config/policy.example.yaml" },
  certificates: { about: "certificates for OPC UA: trust, renewal, what a refusal means", file: "docs/pki.md" },
  api: { about: "the operations of the configuration API, with examples", file: "docs/api/reference.md" },
};

/** The topics, one a line. Pure. */
export const topicList = (): string =>
  Object.entries(HELP_TOPICS)
    .map(([name, { about }]) => `  ${name.padEnd(16)}${about}`)
    .join("\n");

/** A topic's text: the keys of its details, and its document. Throws UsageError. */
export function topicText(name: string): string {
  const topic = Object.hasOwn(HELP_TOPICS, name) ? HELP_TOPICS[name] : undefined;
  if (!topic) {
    const meant = nearest(name, Object.keys(HELP_TOPICS));
    throw new UsageError(
      `help ${name}: there is no such verb or topic; ${meant === undefined ? "collector help lists both" : `did you mean ${meant}?`}`,
    );
  }
  const { source, sink, file } = topic;
  const keys = [
    ...(source ? [`Keys of \`collector source add NAME ${source} key=value …\`:`, ...keyLines(DETAILS[source].create), ""] : []),
    ...(sink ? [`Keys of \`collector sink add NAME ${sink} key=value …\`:`, ...keyLines(SINK_DETAILS[sink].create), ""] : []),
  ];
  return `${[...keys, documentAt(name, file).trimEnd()].join("\n")}\n`;
}

function documentAt(name: string, file: string): string {
  const shipped = path.join(import.meta.dirname, "help", name);
  return readFileSync(existsSync(shipped) ? shipped : path.resolve(import.meta.dirname, "../..", file), "utf8");
}

interface Schema {
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly oneOf?: readonly Schema[];
}

function keyLines(schema: z.ZodType): readonly string[] {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Schema;
  return Object.entries(properties).flatMap(([key, value]) =>
    value.const === undefined ? keyLine(key, value, required.includes(key) && value.default === undefined) : [],
  );
}

/** Of an object its own keys, of a union those of each variant. */
function keyLine(key: string, schema: Schema, isRequired: boolean): readonly string[] {
  const line = `  ${key} (${typeWords(schema)}${needWords(schema, isRequired)}): ${schema.description ?? ""}`;
  const inner = [schema, ...(schema.oneOf ?? [])].flatMap(({ properties = {}, required = [] }) =>
    Object.entries(properties).flatMap(([name, value]) =>
      value.const === undefined ? keyLine(`${key}.${name}`, value, required.includes(name)) : [],
    ),
  );
  return [line, ...new Set(inner)];
}

function needWords({ default: preset }: Schema, isRequired: boolean): string {
  if (isRequired) return ", required";
  return preset === undefined ? "" : `, default ${JSON.stringify(preset)}`;
}

function typeWords({ type, enum: words, oneOf }: Schema): string {
  if (words) return words.join(" | ");
  const tags = (oneOf ?? []).flatMap(({ properties }) => Object.values(properties ?? {}).flatMap((field) => field.const ?? []));
  return tags.length > 0 ? tags.join(" | ") : [type ?? "any"].flat().join(" or ");
}
