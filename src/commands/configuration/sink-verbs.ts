import type { SinkFacts } from "../../sinks/facts.ts";
import { SINKS } from "../../sinks/index.ts";
import { FILE_IN, FILE_OUT, JSON_ARRAY, KEY_FILE, type Option, PASSWORD_FILE, type VerbGroup } from "../verb.ts";
import type { ApiOptions } from "./api-connection.ts";
import type { SinkFields } from "./sink.ts";

const SINK = "name or uuid of the data sink";
const USER: Option = {
  flags: "--user <name[=file]>",
  description: "user of an OPC UA sink; the file holds the password, else the verb asks for it; repeat it, the list replaces the old one",
  repeats: true,
};
const PASSWORD: readonly Option[] = [
  PASSWORD_FILE,
  {
    flags: "--ask-password",
    description: "ask for the password at the broker; a username has it asked for in any case, except with --json",
  },
];
const KEPT_HERE =
  "User, password, TLS and the other options of a sink are kept on the collector's own machine, where the command is typed: certificates and keys as copies, the password with the other secrets. They are taken within seconds, and the same option in the settings file wins. An empty text removes one.";

/** `collector sink …`. */
export const SINK_VERBS: VerbGroup = {
  name: "sink",
  description: "Add, change and list data sinks, over the configuration API.",
  verbs: [
    {
      usage: "add <name> <type> [fields...]",
      description: "Add a data sink; fields are key=value, as its type has them.",
      args: {
        name: "its name",
        type: "mqtt, opcua or platform",
        fields: "details and options as key=value; an unknown key is answered with the known ones",
      },
      examples: Object.values<SinkFacts>(SINKS).flatMap(({ examples }) => examples),
      options: [KEY_FILE, USER, ...PASSWORD],
      notes: KEPT_HERE,
      run: async (io, name: string, type: string, words: string[], options: SinkFields) =>
        (await import("./sink.ts")).sinkAdd(name, type, words, options, io),
    },
    {
      usage: "set <name> [fields...]",
      description: "Change the given fields of a data sink.",
      args: { name: SINK, fields: "details and options to change, as key=value" },
      examples: [
        "collector sink set plant publish_interval=5",
        "sudo collector sink set plant username=line-3 --password-file pw.txt",
        "sudo collector sink set plant port=8883 tls=true",
        "sudo collector sink set plant tls=false username=",
      ],
      notes: KEPT_HERE,
      options: [KEY_FILE, USER, ...PASSWORD, { flags: "--name <name>", description: "a new name" }],
      run: async (io, name: string, words: string[], options: SinkFields) => (await import("./sink.ts")).sinkSet(name, words, options, io),
    },
    {
      usage: "list",
      description: "List the data sinks of this collector.",
      examples: ["collector sink list"],
      json: JSON_ARRAY,
      options: [KEY_FILE],
      run: async (io, options: ApiOptions) => (await import("./sink.ts")).sinkList(options, io),
    },
    {
      usage: "rm <name>",
      description: "Delete a data sink.",
      args: { name: SINK },
      examples: ["collector sink rm plant"],
      options: [KEY_FILE],
      run: async (io, name: string, options: ApiOptions) => (await import("./sink.ts")).sinkRemove(name, options, io),
    },
    {
      usage: "export [file]",
      description: "Write the data sinks as YAML, without passwords.",
      args: { file: FILE_OUT },
      examples: ["collector sink export sinks.yaml"],
      options: [KEY_FILE],
      run: async (io, file: string | undefined, options: ApiOptions) => (await import("./source-file.ts")).sinkExport(file, options, io),
    },
    {
      usage: "import <file>",
      description: "Create and change data sinks by name from a YAML file as export writes it.",
      args: { file: FILE_IN },
      examples: ["collector sink import sinks.yaml"],
      options: [KEY_FILE],
      run: async (io, file: string, options: ApiOptions) => (await import("./source-file.ts")).sinkImport(file, options, io),
    },
  ],
};
