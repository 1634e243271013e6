import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import type { TypeFacts } from "../../drivers/facts.ts";
import { DRIVERS } from "../../drivers/index.ts";
import { nearest } from "../base/nearest.ts";
import { DETAILS } from "../model/details.ts";
import { isBoundType } from "../model/profile-details.ts";
import { SINK_DETAILS } from "../model/sink-details.ts";
import type { SinkFacts } from "../sinks/facts.ts";
import { SINKS } from "../sinks/index.ts";
import { UsageError } from "./io.ts";

/** What `collector help TOPIC` prints, which a site without a network needs. */
interface Topic {
  /** In one line. */
  readonly about: string;
  /** Below the project's root; the package has it as `help/<topic>` beside the program. */
  readonly file: string;
  /** The command that takes the details of a type, and their schema. */
  readonly keys?: { readonly command: string; readonly schema: z.ZodType };
  /** Options that the same command takes, and this machine keeps. */
  readonly options?: () => Promise<readonly z.ZodType[]>;
}

const ofSource = ({ type, title }: TypeFacts): readonly [string, Topic] => [
  type,
  {
    about: `data sources: ${title}${isBoundType(type) ? ", by a profile or a plugin" : ""}`,
    file: `drivers/${type}/README.md`,
    keys: { command: `collector source add NAME ${type} key=value …`, schema: DETAILS[type].create },
  },
];

const ofSink = ({ type, manual: { topic, about } }: SinkFacts): readonly [string, Topic] => [
  topic,
  {
    about: `data sinks: ${about}`,
    file: `src/sinks/${type}/README.md`,
    keys: { command: `collector sink add NAME ${type} key=value …`, schema: SINK_DETAILS[type].create },
    options: async () => {
      const { default: kind } = await SINKS[type].kind();
      // Loaded here: each verb loads this page.
      const { deliverySettings } = await import("../delivery/prepare-sink.ts");
      return [kind.settings, deliverySettings(kind)];
    },
  },
];

export const HELP_TOPICS: Readonly<Record<string, Topic>> = {
  ...Object.fromEntries(Object.values(DRIVERS).map(ofSource)),
  profiles: { about: "profiles of devices whose protocol is not public", file: "docs/profiles.md" },
  plugins: { about: "plugins: programs that read devices whose protocol is not public", file: "docs/plugin-protocol.md" },
  ...Object.fromEntries(Object.values<SinkFacts>(SINKS).map(ofSink)),
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

/** A topic's text: the keys of its details, its options, and its document. Throws UsageError. */
export async function topicText(name: string): Promise<string> {
  const topic = Object.hasOwn(HELP_TOPICS, name) ? HELP_TOPICS[name] : undefined;
  if (!topic) {
    const meant = nearest(name, Object.keys(HELP_TOPICS));
    throw new UsageError(
      `help ${name}: there is no such verb or topic; ${meant === undefined ? "collector help lists both" : `did you mean ${meant}?`}`,
    );
  }
  const { keys, options, file } = topic;
  // A password is no word of a command line.
  const ofMachine = ((await options?.()) ?? []).flatMap(keyLines).filter((line) => !line.startsWith("  password_"));
  const lines = [
    ...(keys ? [`Keys of \`${keys.command}\`:`, ...keyLines(keys.schema), ""] : []),
    ...(ofMachine.length > 0 ? ["Options that the same command takes, and this machine keeps:", ...ofMachine, ""] : []),
  ];
  return `${[...lines, documentAt(name, file).trimEnd()].join("\n")}\n`;
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
