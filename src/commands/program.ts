import { Command, CommanderError } from "commander";
import { addPkiVerbs } from "./certificates/pki-program.ts";
import { addApiVerbs } from "./configuration/api-program.ts";
import type { SecretOptions } from "./configuration/secret.ts";
import type { BrowseOptions } from "./device/browse.ts";
import type { ReadOptions } from "./device/read.ts";
import { type CommandIo, complain, EXIT, type ExitCode, StoppedError, UsageError } from "./io.ts";
import { actionsTo, addVerb, EXIT_CODES, JSON_ARRAY, KEY_FILE, PASSWORD_FILE } from "./verb.ts";

/** The verbs and their help. Each is loaded when it is called, so that `--version` loads no driver and no database. */
export interface Program {
  readonly command: Command;
  /** What the verb that was called ended with. */
  readonly exit: () => ExitCode;
}

export function createProgram(io: CommandIo): Program {
  let exit: ExitCode = EXIT.good;
  const program = new Command("collector")
    .description("Reads industrial machines and publishes their values.")
    .version(io.version, "--version", "print the version")
    .helpOption("-h, --help", "print this help")
    .showHelpAfterError("(collector --help lists the verbs, collector VERB --help explains one)")
    .showSuggestionAfterError(true)
    .configureOutput({ writeOut: (text) => void io.stdout.write(text), writeErr: (text) => void io.stderr.write(text) })
    .exitOverride()
    .addHelpText(
      "after",
      `
Examples:
  collector read modbus_tcp host=10.0.0.5 holding:0:uint16
  collector run --config collector.yaml
  collector status
${EXIT_CODES}`,
    );

  const done = (code: ExitCode): void => {
    exit = code;
  };
  const run = actionsTo(done);

  addVerb(program, "run", {
    description: "Run the service: pull the configuration, read the data sources, publish to the data sinks.",
    examples: [
      "collector run                              settings from /etc/collector/collector.yaml, or the defaults",
      "collector run --config ./collector.yaml    settings from another file",
    ],
    // What it prints is its log, whose format the settings have (log.format).
    json: false,
  })
    .addHelpText("after", "\nSIGINT or SIGTERM stops it in order; a second one ends it at once.")
    .action(run(async (options: { config?: string }) => (await import("./service/run.ts")).run(options, io)));

  addVerb(program, "status", {
    description: "Show the state of the running service's sources and sinks, and what to do about failures.",
    examples: ["collector status", "collector status --json | jq '.sources[] | {name, state: .status.state.type}'"],
  })
    .addHelpText("after", EXIT_CODES)
    .action(run(async (options: { config?: string; json?: boolean }) => (await import("./service/status.ts")).status(options, io)));

  addVerb(program, "read <type> <words...>", {
    description: "Read a device without any configuration. Of the settings, only state_dir and the policy.yaml next to them apply.",
    args: {
      type: "type of the data source, such as modbus_tcp",
      words: "key=value pairs (connection details and the driver's settings) and addresses, ADDRESS or ADDRESS:TYPE",
    },
    examples: [
      "collector read modbus_tcp host=10.0.0.5 holding:0:uint16 holding:10:float32",
      "collector read modbus_tcp host=10.0.0.5 port=1502 unit=3 order=CDAB input:100:int32 --json",
      "collector read modbus_tcp host=10.0.0.5 coil:0 --count 10 --interval 500ms",
      "collector read opcua endpoint_url=opc.tcp://10.0.0.7:4840 i=2258 'ns=2;s=Press.Temperature'",
      "collector read opcua endpoint_url=opc.tcp://10.0.0.7 username=reader 'nsu=http://example.com/press;s=Counter'",
      "collector read opcua endpoint_url=opc.tcp://10.0.0.7 security_mode=SignAndEncrypt \\",
      "  endpoint_security_policy=Basic256Sha256 trust=first_use /Objects/2:Press/2:Temperature",
    ],
    json: "print one JSON object for each pass",
  })
    .option("-t, --type <type>", "type of the addresses without one: bool, int16, uint32, float32, string(20), float32[10] …")
    .option("--timeout <duration>", "deadline of one pass", "10s")
    .option("--count <n>", "number of passes", "1")
    .option("--interval <duration>", "from the start of one pass to the next", "1s")
    .option(...PASSWORD_FILE)
    .addHelpText(
      "after",
      `
The part after the last colon of an address is its type only if it names one. For opcua, endpoint_url is enough: the defaults are None
and Anonymous. The verb asks for the password of a username, or takes it from --password-file. It shows the thumbprint of a server
certificate that is not trusted yet, and the command that trusts it; trust=first_use trusts the first one that the server shows.
${EXIT_CODES}`,
    )
    .action(
      run(async (type: string, words: string[], options: ReadOptions) => (await import("./device/read.ts")).read(type, words, options, io)),
    );

  addVerb(program, "browse <source> [words...]", {
    description: "List the variables of a device.",
    args: {
      source: "name of a data source, or the type of a device that is not configured",
      words: "key=value pairs for such a device: connection details and the driver's settings",
    },
    examples: [
      "collector browse opcua endpoint_url=opc.tcp://10.0.0.7:4840",
      "collector browse press-1 --depth 3",
      "collector browse press-1 --filter temperature --json",
      "collector browse press-1 --csv > press-1.csv     look it over, then: collector variables import press-1 press-1.csv",
      "collector browse press-1 --filter 'Line1/*' --csv | collector variables import press-1 -",
    ],
    json: "print one JSON object per line, as they are found",
  })
    .option("--csv", "print the variables as CSV for collector variables import")
    .option("--depth <n>", "at most this many levels")
    .option("--filter <text>", "only variables with this text in name, path or address; * matches anything")
    .option("--timeout <duration>", "stop after this time, with what was found", "10min")
    .option(...PASSWORD_FILE)
    .option(...KEY_FILE)
    .addHelpText(
      "after",
      `
It only reads. Ctrl-C stops it, with what was found so far.
${EXIT_CODES}`,
    )
    .action(
      run(async (source: string, words: string[], options: BrowseOptions) =>
        (await import("./device/browse.ts")).browse(source, words, options, io),
      ),
    );

  const secret = program.command("secret").description("Keep the secrets of data sources and data sinks on this machine.");
  addVerb(secret, "set <entry>", {
    description: "Store a secret and hand it to the running service at once. The verb asks for it; it is never an argument.",
    args: { entry: "name or uuid of the data source or data sink; <entry>/users/<user> for a user of a hosted OPC UA server" },
    examples: [
      "sudo collector secret set press-1",
      "sudo collector secret set plant-broker --stdin < password.txt",
      "sudo collector secret set opcua-server/users/scada",
    ],
  })
    .option("--stdin", "take the first line of stdin instead of asking")
    .addHelpText(
      "after",
      "\nEncrypted if systemd has a TPM or a host key of this machine; readable by root alone in any case. With --json it does not ask.",
    )
    .action(
      run(async (entry: string, options: SecretOptions) => (await import("./configuration/secret.ts")).secretSet(entry, options, io)),
    );
  addVerb(secret, "list", {
    description: "List the owners of the stored secrets, never the secrets.",
    examples: ["sudo collector secret list"],
    json: JSON_ARRAY,
  }).action(run(async (options: SecretOptions) => (await import("./configuration/secret.ts")).secretList(options, io)));
  addVerb(secret, "rm <entry>", {
    description: "Delete a secret, here and in the running service.",
    args: { entry: "name or uuid, as secret list shows it" },
    examples: ["sudo collector secret rm press-1"],
  }).action(
    run(async (entry: string, options: SecretOptions) => (await import("./configuration/secret.ts")).secretRemove(entry, options, io)),
  );

  addApiVerbs(program, io, done);
  addPkiVerbs(program, io, done);

  return { command: program, exit: () => exit };
}

/** Runs the verb that `args` (without node and script) name; gives the exit code. Prints on stderr what the person did wrong. */
export async function parseCommandLine({ command, exit }: Program, args: readonly string[], io: CommandIo): Promise<ExitCode> {
  try {
    await command.parseAsync([...args], { from: "user" });
    return exit();
  } catch (error) {
    // Commander has printed its message by then; help and version end with 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.good : EXIT.usage;
    if (error instanceof StoppedError) return EXIT.interrupted;
    if (!(error instanceof UsageError)) throw error;
    complain(io, error.message);
    return EXIT.usage;
  }
}
