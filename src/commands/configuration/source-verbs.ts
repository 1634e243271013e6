import { typeExamples } from "../type-examples.ts";
import { FILE_IN, FILE_OUT, JSON_ARRAY, KEY_FILE, type Option, PASSWORD_FILE, SOURCE, type VerbGroup } from "../verb.ts";
import type { ApiOptions } from "./api-connection.ts";
import type { SourceFields } from "./source.ts";
import { SOURCE_FIELDS } from "./source-fields.ts";

const FIELDS: readonly Option[] = [
  ...SOURCE_FIELDS.map(({ option, kind, description }) => ({ flags: `--${option} <${kind}>`, description })),
  PASSWORD_FILE,
  { flags: "--ask-password", description: "ask for the password; a username has it asked for in any case, except with --json" },
];

/** `collector source …`. */
export const SOURCE_VERBS: VerbGroup = {
  name: "source",
  description: "Add, change and list data sources, over the configuration API.",
  verbs: [
    {
      usage: "add <name> <type> [fields...]",
      description: "Add a data source; fields are key=value, as its type has them. Options of the driver are kept on this machine.",
      args: {
        name: "its name",
        type: "type of the data source, such as modbus_tcp or opcua",
        fields: "connection details and local options as key=value; an unknown key is answered with the known ones",
      },
      examples: typeExamples("source add"),
      options: [KEY_FILE, ...FIELDS],
      run: async (io, name: string, type: string, words: string[], options: SourceFields) =>
        (await import("./source.ts")).sourceAdd(name, type, words, options, io),
    },
    {
      usage: "set <name> [fields...]",
      description:
        "Change the given fields of a data source; an empty text removes one. Asks again for a stored password that would go elsewhere or be less protected.",
      args: { name: SOURCE, fields: "connection details and local options to change, as key=value" },
      examples: [
        "collector source set press-1 host=10.0.0.6 --interval 2s",
        "collector source set press-1 order=CDAB unit=3",
        "collector source set line-5 host=10.0.0.10 --password-file pw.txt",
        "collector source set press-1 --name press-left --note ''",
      ],
      options: [KEY_FILE, ...FIELDS, { flags: "--name <name>", description: "a new name" }],
      run: async (io, name: string, words: string[], options: SourceFields) =>
        (await import("./source.ts")).sourceSet(name, words, options, io),
    },
    {
      usage: "list",
      description: "List the data sources of this collector.",
      examples: ["collector source list"],
      json: JSON_ARRAY,
      options: [KEY_FILE],
      run: async (io, options: ApiOptions) => (await import("./source.ts")).sourceList(options, io),
    },
    {
      usage: "rm <name>",
      description: "Delete a data source with its variables.",
      args: { name: SOURCE },
      examples: ["collector source rm press-1"],
      options: [KEY_FILE],
      run: async (io, name: string, options: ApiOptions) => (await import("./source.ts")).sourceRemove(name, options, io),
    },
    {
      usage: "export [file]",
      description: "Write the data sources as YAML, without variables and secrets.",
      args: { file: FILE_OUT },
      examples: ["collector source export sources.yaml"],
      options: [KEY_FILE],
      run: async (io, file: string | undefined, options: ApiOptions) => (await import("./source-file.ts")).sourceExport(file, options, io),
    },
    {
      usage: "import <file>",
      description: "Create and change data sources by name from a YAML file as export writes it.",
      args: { file: FILE_IN },
      examples: ["collector source import sources.yaml"],
      options: [KEY_FILE],
      run: async (io, file: string, options: ApiOptions) => (await import("./source-file.ts")).sourceImport(file, options, io),
    },
  ],
};
