import { FILE_OUT, JSON_ARRAY, KEY_FILE, type Option, SOURCE, type VerbGroup } from "../verb.ts";
import type { ApiOptions } from "./api-connection.ts";
import type { ShownOptions, VariableFields } from "./variables.ts";
import type { ImportOptions } from "./variables-import.ts";

const FIELDS: readonly Option[] = [
  { flags: "-t, --type <type>", description: "type of the value, such as uint16 or float32" },
  { flags: "--unit <unit>", description: "unit after scaling" },
  { flags: "--factor <number>", description: "factor of the raw value" },
  { flags: "--offset <number>", description: "added after the multiplication" },
  { flags: "--comment <text>", description: "remarks" },
  { flags: "--status <status>", description: "ACTIVE, EXPLORATION or INACTIVE" },
];

const LOCAL: Option = { flags: "--local", description: "those of the variable file on this machine, which wins over the API" };
const LOCAL_NOTES = "An API that does not offer variables has none to show: those of the file on this machine are shown then.";

/** `collector variables …`. */
export const VARIABLES_VERBS: VerbGroup = {
  name: "variables",
  description: "Load, change and list the variables of a data source.",
  verbs: [
    {
      usage: "import <source> <file>",
      description: "Create and change variables by name from a CSV or YAML file; - is stdin.",
      args: { source: SOURCE, file: "CSV file, or YAML by its name (.yaml, .yml); - is stdin, as CSV" },
      examples: [
        "collector variables import press-1 press-1.csv",
        "collector variables import press-1 press-1.csv --replace",
        "collector browse press-1 --csv | collector variables import press-1 -",
        "collector variables import line-2 kepware-project.json --device Channel1.Oven --dry-run",
        "collector variables import line-2 ignition-tags.json --count-from 1 --try",
        "collector variables import line-3 motor.db --db 12",
      ],
      options: [
        KEY_FILE,
        { flags: "--replace", description: "delete the variables that the file does not name" },
        { flags: "--dry-run", description: "change nothing; say what would be changed, and what is refused and why" },
        { flags: "--try", description: "change nothing; read the first ten variables once and show their values" },
        { flags: "--device <name>", description: "take the tags of this device, where the list has several" },
        { flags: "--db <number>", description: "data block of a STEP 7 source, which says its name only: 12, or Motor=12,Valve=13" },
        { flags: "--count-from <number>", description: "0 or 1: how the other program counts, where its addresses do not say it" },
      ],
      notes: `The first line names the columns: name;address;type;unit;factor;offset;comment;status.
Delimiter ; or , or tab, UTF-8 or Windows-1252, decimal point or comma.
Lists of other programs are known by their content: Kepware (CSV, JSON), Ignition (CSV, JSON), Studio 5000 (CSV, L5X), PLC tags (XLSX, XML, SDF) and data blocks (.db, .scl) of TIA Portal, of blocks with optimised access for s7plus only; configurations of Telegraf (TOML) and Home Assistant (YAML), flows of Node-RED (JSON), tags of EMQX Neuron (XLSX), projects of CX-Programmer (CXT).
Names, addresses, types, linear scaling, units and descriptions are taken over. An address with one meaning in that program is written in the words of the collector, which is said; one with several is refused with all of them.
A bad line is named and the rest is imported; a last line that is cut off refuses the whole file. The driver of the data source checks each address, if there is one.`,
      run: async (io, source: string, file: string, options: ImportOptions) =>
        (await import("./variables-import.ts")).variablesImport(source, file, options, io),
    },
    {
      usage: "export <source> [file]",
      description: "Write the variables as CSV, as import takes it.",
      args: { source: SOURCE, file: FILE_OUT },
      examples: ["collector variables export press-1 press-1.csv", "collector variables export press-1 --local"],
      options: [KEY_FILE, LOCAL],
      notes: LOCAL_NOTES,
      run: async (io, source: string, file: string | undefined, options: ShownOptions) =>
        (await import("./variables.ts")).variablesExport(source, file, options, io),
    },
    {
      usage: "list <source>",
      description: "List the variables of a data source.",
      args: { source: SOURCE },
      examples: ["collector variables list press-1", "collector variables list press-1 --local"],
      json: JSON_ARRAY,
      options: [KEY_FILE, LOCAL],
      notes: LOCAL_NOTES,
      run: async (io, source: string, options: ShownOptions) => (await import("./variables.ts")).variablesList(source, options, io),
    },
    {
      usage: "check [source]",
      description: "Look over the variable files on this machine: every line, and every address.",
      args: { source: `${SOURCE}; absent: all` },
      examples: ["collector variables check", "collector variables check press-1 --json"],
      options: [KEY_FILE],
      notes: `A file is named by the uuid or the name of its data source (press-1.csv, .yaml or .yml) and lies in variables_dir of the settings.
It has the form that import takes. Nothing is changed. Without an answer of the API, the data sources are the last good ones.`,
      showsExitCodes: true,
      run: async (io, source: string | undefined, options: ApiOptions) =>
        (await import("./variables-local.ts")).variablesCheck(source, options, io),
    },
    {
      usage: "nsu <source> [file]",
      description: "Rewrite OPC UA addresses with ns= to the URIs of their namespaces (nsu=).",
      args: { source: SOURCE, file: "CSV file for the rewritten variables, - is stdout; absent: those of the API are changed" },
      examples: ["collector variables nsu press-1", "collector variables nsu press-1 press-1.csv"],
      options: [KEY_FILE],
      notes: `The index of a namespace holds until the server starts again; its URI stays.
ns= means the namespaces that the server had when the collector first read the data source, which the service keeps in its state folder.
Variables of a file on this machine are not changed there: FILE takes what it should hold.`,
      run: async (io, source: string, file: string | undefined, options: ApiOptions) =>
        (await import("./variables-lasting.ts")).variablesLasting(source, file, options, io),
    },
    {
      usage: "add <source> <name> <address>",
      description: "Add a variable; ADDRESS or ADDRESS:TYPE.",
      args: {
        source: SOURCE,
        name: "name of the variable, unique in its data source",
        address: "ADDRESS or ADDRESS:TYPE, in the grammar of the data source's type",
      },
      examples: ["collector variables add press-1 temperature holding:10:float32 --unit °C"],
      options: [KEY_FILE, ...FIELDS],
      run: async (io, source: string, name: string, address: string, options: VariableFields) =>
        (await import("./variables.ts")).variablesAdd(source, name, address, options, io),
    },
    {
      usage: "set <source> <name>",
      description: "Change the given fields of a variable; an empty text removes one.",
      args: { source: SOURCE, name: "name or uuid of the variable" },
      examples: ["collector variables set press-1 temperature --factor 0.1 --status INACTIVE"],
      options: [
        KEY_FILE,
        ...FIELDS,
        { flags: "--address <address>", description: "ADDRESS or ADDRESS:TYPE" },
        { flags: "--name <name>", description: "a new name" },
      ],
      run: async (io, source: string, name: string, options: VariableFields) =>
        (await import("./variables.ts")).variablesSet(source, name, options, io),
    },
    {
      usage: "rm <source> <names...>",
      description: "Delete variables.",
      args: { source: SOURCE, names: "names or uuids of the variables" },
      examples: ["collector variables rm press-1 temperature pressure"],
      options: [KEY_FILE],
      run: async (io, source: string, names: string[], options: ApiOptions) =>
        (await import("./variables.ts")).variablesRemove(source, names, options, io),
    },
  ],
};
