import type { Command } from "commander";
import type { CommandIo, ExitCode } from "../io.ts";
import type { SetupOptions } from "../service/setup.ts";
import { actionsTo, addVerb, JSON_ARRAY, KEY_FILE, PASSWORD_FILE, type VerbHelp } from "../verb.ts";
import type { ApiTaskOptions } from "./api.ts";
import type { ApiOptions } from "./api-connection.ts";
import type { RestoreOptions } from "./restore.ts";
import type { SinkFields } from "./sink.ts";
import type { SourceFields } from "./source.ts";
import type { ImportOptions, VariableFields } from "./variables.ts";

const FILE_OUT = "file to write; absent or -: the terminal";
const FILE_IN = "file to read";
const SOURCE = "name or uuid of the data source";
const VARIABLE = "name of the variable, unique in its data source";
const ADDRESS = "ADDRESS or ADDRESS:TYPE, in the grammar of the data source's type";

/** The verbs over the configuration API and their help, each loaded when it is called. `done` takes what a verb ended with. */
export function addApiVerbs(program: Command, io: CommandIo, done: (code: ExitCode) => void): void {
  const verb = (parent: Command, usage: string, help: VerbHelp): Command => addVerb(parent, usage, help).option(...KEY_FILE);
  const task = (parent: Command, usage: string, help: VerbHelp): Command => addVerb(parent, usage, help);
  const run = actionsTo(done);

  const source = program.command("source").description("Add, change and list data sources, over the configuration API.");
  const fields = (command: Command): Command =>
    command
      .option("--machine <name>", "machine of the source; created if it does not exist (default: the source's name)")
      .option("--interval <duration>", "time between two readouts, such as 5s")
      .option("--limit <n>", "at most this many variables per readout, or none")
      .option("--manufacturer <text>", "manufacturer of the device")
      .option("--model <text>", "model of the device")
      .option("--note <text>", "remarks")
      .option(...PASSWORD_FILE)
      .option("--ask-password", "ask for the password; a username has it asked for in any case, except with --json");
  fields(
    verb(source, "add <name> <type> [fields...]", {
      description: "Add a data source; fields are key=value, as its type has them.",
      args: {
        name: "its name",
        type: "type of the data source, such as modbus_tcp or opcua",
        fields: "connection details as key=value; an unknown key is answered with the known ones",
      },
      examples: [
        "collector source add press-1 modbus_tcp host=10.0.0.5 --interval 5s",
        "collector source add line-2 opcua endpoint_url=opc.tcp://10.0.0.7:4840 endpoint_security_policy=Basic256Sha256 username=reader",
        "collector source add line-5 opcua endpoint_url=opc.tcp://10.0.0.9:4840 username=reader --password-file pw.txt",
        "collector source add plc-3 s7 host=10.0.0.8 slot=1 --machine 'Press 3'",
      ],
    }),
  ).action(
    run(async (name: string, type: string, words: string[], options: SourceFields) =>
      (await import("./source.ts")).sourceAdd(name, type, words, options, io),
    ),
  );
  fields(
    verb(source, "set <name> [fields...]", {
      description:
        "Change the given fields of a data source; an empty text removes one. Asks again for a stored password that would go elsewhere or be less protected.",
      args: { name: SOURCE, fields: "connection details to change, as key=value" },
      examples: [
        "collector source set press-1 host=10.0.0.6 --interval 2s",
        "collector source set line-5 host=10.0.0.10 --password-file pw.txt",
        "collector source set press-1 --name press-left --note ''",
      ],
    }),
  )
    .option("--name <name>", "a new name")
    .action(
      run(async (name: string, words: string[], options: SourceFields) =>
        (await import("./source.ts")).sourceSet(name, words, options, io),
      ),
    );
  verb(source, "list", {
    description: "List the data sources of this collector.",
    examples: ["collector source list"],
    json: JSON_ARRAY,
  }).action(run(async (options: ApiOptions) => (await import("./source.ts")).sourceList(options, io)));
  verb(source, "rm <name>", {
    description: "Delete a data source with its variables.",
    args: { name: SOURCE },
    examples: ["collector source rm press-1"],
  }).action(run(async (name: string, options: ApiOptions) => (await import("./source.ts")).sourceRemove(name, options, io)));
  verb(source, "export [file]", {
    description: "Write the data sources as YAML, without variables and secrets.",
    args: { file: FILE_OUT },
    examples: ["collector source export sources.yaml"],
  }).action(
    run(async (file: string | undefined, options: ApiOptions) => (await import("./source-file.ts")).sourceExport(file, options, io)),
  );
  verb(source, "import <file>", {
    description: "Create and change data sources by name from a YAML file as export writes it.",
    args: { file: FILE_IN },
    examples: ["collector source import sources.yaml"],
  }).action(run(async (file: string, options: ApiOptions) => (await import("./source-file.ts")).sourceImport(file, options, io)));

  const sink = program.command("sink").description("Add, change and list data sinks, over the configuration API.");
  const gather = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];
  const users = (command: Command): Command =>
    command.option(
      "--user <name[=file]>",
      "user of an OPC UA sink; the file holds the password, else the verb asks for it; repeat it, the list replaces the old one",
      gather,
    );
  users(
    verb(sink, "add <name> <type> [fields...]", {
      description: "Add a data sink; fields are key=value, as its type has them.",
      args: {
        name: "its name",
        type: "mqtt, opcua or platform",
        fields: "details as key=value; an unknown key is answered with the known ones",
      },
      examples: [
        "collector sink add plant mqtt host=10.0.0.2 topic='plant/{source}'",
        "collector sink add server opcua port=4840 --user reader",
        "collector sink add server opcua security_modes=SignAndEncrypt --user reader=pw.txt --user scada=pw2.txt",
        "collector sink add platform platform",
      ],
    }),
  ).action(
    run(async (name: string, type: string, words: string[], options: SinkFields) =>
      (await import("./sink.ts")).sinkAdd(name, type, words, options, io),
    ),
  );
  users(
    verb(sink, "set <name> [fields...]", {
      description: "Change the given fields of a data sink.",
      args: { name: "name or uuid of the data sink", fields: "details to change, as key=value" },
      examples: ["collector sink set plant publish_interval=5"],
    }),
  )
    .option("--name <name>", "a new name")
    .action(
      run(async (name: string, words: string[], options: SinkFields) => (await import("./sink.ts")).sinkSet(name, words, options, io)),
    );
  verb(sink, "list", {
    description: "List the data sinks of this collector.",
    examples: ["collector sink list"],
    json: JSON_ARRAY,
  }).action(run(async (options: ApiOptions) => (await import("./sink.ts")).sinkList(options, io)));
  verb(sink, "rm <name>", {
    description: "Delete a data sink.",
    args: { name: "name or uuid of the data sink" },
    examples: ["collector sink rm plant"],
  }).action(run(async (name: string, options: ApiOptions) => (await import("./sink.ts")).sinkRemove(name, options, io)));
  verb(sink, "export [file]", {
    description: "Write the data sinks as YAML, without passwords.",
    args: { file: FILE_OUT },
    examples: ["collector sink export sinks.yaml"],
  }).action(run(async (file: string | undefined, options: ApiOptions) => (await import("./source-file.ts")).sinkExport(file, options, io)));
  verb(sink, "import <file>", {
    description: "Create and change data sinks by name from a YAML file as export writes it.",
    args: { file: FILE_IN },
    examples: ["collector sink import sinks.yaml"],
  }).action(run(async (file: string, options: ApiOptions) => (await import("./source-file.ts")).sinkImport(file, options, io)));

  const variables = program.command("variables").description("Load, change and list the variables of a data source.");
  const variableFields = (command: Command): Command =>
    command
      .option("-t, --type <type>", "type of the value, such as uint16 or float32")
      .option("--unit <unit>", "unit after scaling")
      .option("--factor <number>", "factor of the raw value")
      .option("--offset <number>", "added after the multiplication")
      .option("--comment <text>", "remarks")
      .option("--status <status>", "ACTIVE, EXPLORATION or INACTIVE");
  verb(variables, "import <source> <file>", {
    description: "Create and change variables by name from a CSV or YAML file; - is stdin.",
    args: { source: SOURCE, file: "CSV file, or YAML by its name (.yaml, .yml); - is stdin, as CSV" },
    examples: [
      "collector variables import press-1 press-1.csv",
      "collector variables import press-1 press-1.csv --replace",
      "collector browse press-1 --csv | collector variables import press-1 -",
    ],
  })
    .option("--replace", "delete the variables that the file does not name")
    .addHelpText(
      "after",
      "\nThe first line names the columns: name;address;type;unit;factor;offset;comment;status.\nDelimiter ; or , or tab, UTF-8 or Windows-1252, decimal point or comma.\nA bad line is named and the rest is imported; a last line that is cut off refuses the whole file. The driver of the data source checks each address, if there is one.",
    )
    .action(
      run(async (name: string, file: string, options: ImportOptions) =>
        (await import("./variables.ts")).variablesImport(name, file, options, io),
      ),
    );
  verb(variables, "export <source> [file]", {
    description: "Write the variables as CSV, as import takes it.",
    args: { source: SOURCE, file: FILE_OUT },
    examples: ["collector variables export press-1 press-1.csv"],
  }).action(
    run(async (name: string, file: string | undefined, options: ApiOptions) =>
      (await import("./variables.ts")).variablesExport(name, file, options, io),
    ),
  );
  verb(variables, "list <source>", {
    description: "List the variables of a data source.",
    args: { source: SOURCE },
    examples: ["collector variables list press-1"],
    json: JSON_ARRAY,
  }).action(run(async (name: string, options: ApiOptions) => (await import("./variables.ts")).variablesList(name, options, io)));
  variableFields(
    verb(variables, "add <source> <name> <address>", {
      description: "Add a variable; ADDRESS or ADDRESS:TYPE.",
      args: { source: SOURCE, name: VARIABLE, address: ADDRESS },
      examples: ["collector variables add press-1 temperature holding:10:float32 --unit °C"],
    }),
  ).action(
    run(async (name: string, variable: string, address: string, options: VariableFields) =>
      (await import("./variables.ts")).variablesAdd(name, variable, address, options, io),
    ),
  );
  variableFields(
    verb(variables, "set <source> <name>", {
      description: "Change the given fields of a variable; an empty text removes one.",
      args: { source: SOURCE, name: "name or uuid of the variable" },
      examples: ["collector variables set press-1 temperature --factor 0.1 --status INACTIVE"],
    }),
  )
    .option("--address <address>", "ADDRESS or ADDRESS:TYPE")
    .option("--name <name>", "a new name")
    .action(
      run(async (name: string, variable: string, options: VariableFields) =>
        (await import("./variables.ts")).variablesSet(name, variable, options, io),
      ),
    );
  verb(variables, "rm <source> <names...>", {
    description: "Delete variables.",
    args: { source: SOURCE, names: "names or uuids of the variables" },
    examples: ["collector variables rm press-1 temperature pressure"],
  }).action(
    run(async (name: string, names: string[], options: ApiOptions) =>
      (await import("./variables.ts")).variablesRemove(name, names, options, io),
    ),
  );

  addVerb(program, "setup <url>", {
    description: "Connect this collector to a platform: try the key, find its collector, write the settings.",
    args: { url: "base address of the platform's API" },
    examples: [
      "sudo collector setup https://platform.example --key-file key.txt",
      "sudo collector setup https://platform.example --key-file key.txt --ca plant-ca.pem",
    ],
  })
    .requiredOption("--key-file <file>", "file whose first line is the API key; a key is never an argument")
    .option("--collector <uuid>", "this collector's uuid, if the key does not tell it")
    .option("--ca <file>", "certificate authorities of the API (PEM); copied to the folder of the settings, like the key")
    .option("--insecure", "allow plain http to another machine")
    .addHelpText(
      "after",
      "\nA second setup replaces all of these settings: a former --ca or --insecure that is left out is removed. Other settings stay.",
    )
    .action(run(async (url: string, options: SetupOptions) => (await import("../service/setup.ts")).setup(url, options, io)));

  const api = program
    .command("api")
    .description("Keys, audit trail, records and backups of the embedded configuration API, on its own machine.");
  const key = api.command("key").description("Create, list and revoke keys of the embedded API.");
  task(key, "create", {
    description: "Create a key and print it once.",
    examples: [
      "collector api key create --role admin --name laptop",
      "collector api key create --role collector --collector 6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01",
    ],
  })
    .requiredOption("--role <role>", "admin or collector")
    .option("--collector <uuid>", "the collector of a collector key")
    .option("--name <text>", "owner of the key, for the list and the audit trail")
    .action(
      run(async (options: ApiTaskOptions & { role: string; collector?: string; name?: string }) =>
        (await import("./api.ts")).keyCreate(options, io),
      ),
    );
  task(key, "list", { description: "List the keys, never their secrets.", examples: ["collector api key list"], json: JSON_ARRAY }).action(
    run(async (options: ApiTaskOptions) => (await import("./api.ts")).keyList(options, io)),
  );
  task(key, "revoke <id>", {
    description: "Revoke a key at once.",
    args: { id: "number of the key, as api key list shows it" },
    examples: ["collector api key revoke 3"],
  }).action(run(async (id: string, options: ApiTaskOptions) => (await import("./api.ts")).keyRevoke(id, options, io)));
  task(api, "audit", {
    description: "Show who changed what, newest first.",
    examples: ["collector api audit --limit 20"],
    json: JSON_ARRAY,
  })
    .option("--limit <n>", "how many", "50")
    .action(run(async (options: ApiTaskOptions & { limit: string }) => (await import("./api.ts")).audit(options, io)));
  task(api, "backup [file]", {
    description: "Write a backup of the configuration. The service writes one each day, and some minutes after a change.",
    args: { file: "where to write it; without it, among those of the state folder" },
    examples: ["collector api backup", "collector api backup /media/stick/collector.db", "collector api backup --list"],
    json: "print one JSON object, and one JSON array with --list",
  })
    .option("--list", "list the existing backups")
    .action(
      run(async (file: string | undefined, options: ApiTaskOptions & { list?: boolean }) =>
        (await import("./api.ts")).backup(file, options, io),
      ),
    );
  task(api, "export [file]", {
    description: "Write every record as JSON, as the API answers it, without secrets.",
    args: { file: FILE_OUT },
    examples: ["collector api export configuration.json"],
  }).action(run(async (file: string | undefined, options: ApiTaskOptions) => (await import("./api.ts")).exportAll(file, options, io)));
  task(api, "import <file>", {
    description: "Import records of another server of this API, with their uuids; all of them or none.",
    args: { file: FILE_IN },
    examples: [
      "collector api import configuration.json --dry-run",
      "curl … $API/v2/data-sources > sources.json && collector api import sources.json --adopt",
    ],
  })
    .option("--dry-run", "show what would be done, and do nothing")
    .option("--adopt", "give all records to this machine's own collector")
    .addHelpText(
      "after",
      `
The file is what export writes ({"data_sources": […], "data_sinks": […], …}) or a page as the API answers it. Values that only a
read shows are imported too, such as X509Certificate, OTHER, passive and protocol_override. Records that are not in the file stay
unchanged. The file has no passwords: set them with collector source set NAME --password-file FILE, or collector secret set.`,
    )
    .action(
      run(async (file: string, options: ApiTaskOptions & { dryRun?: boolean; adopt?: boolean }) =>
        (await import("./api.ts")).importAll(file, options, io),
      ),
    );
  task(api, "restore [file]", {
    description: "Restore a backup (default: the newest); the service must be stopped.",
    args: { file: "backup to restore; api backup --list names the existing ones" },
    examples: [
      "sudo systemctl stop collector && sudo collector api restore",
      "sudo collector api restore /media/stick/collector.db --yes",
      "sudo collector api restore --from-last-good",
    ],
  })
    .option("--from-last-good", "restore the configuration that the collector keeps, instead of a backup")
    .option("--yes", "restore without asking; needed with --json and without a terminal")
    .addHelpText(
      "after",
      `
Shows age and counts of the backup, of the database that it replaces and of the kept configuration (last-good.json), then asks. The last
five copies of what was replaced stay: the database as api.db.replaced-…, the kept configuration as last-good.json.replaced-….
--from-last-good restores data sources, data sinks and variables; keys and stored secrets come from the replaced database or, if that
cannot be read, from the newest backup.`,
    )
    .action(run(async (file: string | undefined, options: RestoreOptions) => (await import("./restore.ts")).restore(file, options, io)));
}
