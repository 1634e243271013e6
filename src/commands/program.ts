import { Command, CommanderError } from "commander";
import { addApiVerbs } from "./api-program.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "./io.ts";
import { addPkiVerbs } from "./pki-program.ts";
import type { ReadOptions } from "./read.ts";
import type { SecretOptions } from "./secret.ts";

/** The verbs and their help. Each is loaded when it is called, so that `--version` loads no driver and no database. */
export interface Program {
  readonly command: Command;
  /** What the verb that was called ended with. */
  readonly exit: () => ExitCode;
}

const CONFIG = ["-c, --config <file>", "settings file (default: /etc/collector/collector.yaml)"] as const;

const EXIT_CODES = `
Exit codes:
  0  good            1  some variable is bad     2  wrong command line or settings
  3  a source failed 4  the collector failed`;

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

  program
    .command("run")
    .description("Run the service: pull the configuration, read the data sources, publish to the data sinks.")
    .option(...CONFIG)
    .allowExcessArguments(false)
    .addHelpText(
      "after",
      `
Examples:
  collector run                              settings from /etc/collector/collector.yaml, or the defaults
  collector run --config ./collector.yaml    settings from another file

SIGINT or SIGTERM ends it in order; a second one ends it at once.`,
    )
    .action(async (options: { config?: string }) => {
      exit = await (await import("./run.ts")).run(options, io);
    });

  program
    .command("status")
    .description("Ask the running service how its sources and sinks are, and what to do where one fails.")
    .option(...CONFIG)
    .option("--json", "print one JSON object")
    .allowExcessArguments(false)
    .addHelpText(
      "after",
      `
Examples:
  collector status
  collector status --json | jq '.sources[] | {name, state: .status.state.type}'
${EXIT_CODES}`,
    )
    .action(async (options: { config?: string; json?: boolean }) => {
      exit = await (await import("./status.ts")).status(options, io);
    });

  program
    .command("read")
    .description("Read a device without any configuration.")
    .argument("<type>", "type of the data source, such as modbus_tcp")
    .argument("<words...>", "key=value pairs (connection details and the driver's settings) and addresses, ADDRESS or ADDRESS:TYPE")
    .option("-t, --type <type>", "type of the addresses that name none: bool, int16, uint32, float32, string(20), float32[10] …")
    .option("--json", "print one JSON object for each pass")
    .option("--timeout <duration>", "deadline of one pass", "10s")
    .option("--count <n>", "number of passes", "1")
    .option("--interval <duration>", "from the start of one pass to the next", "1s")
    .option("--password-file <file>", "file whose first line is the password; a password is never an argument")
    .option("-c, --config <file>", "settings file (default: /etc/collector/collector.yaml); only policy.yaml beside it is looked at")
    .addHelpText(
      "after",
      `
What follows the last colon of an address is its type only if it is one.

Examples:
  collector read modbus_tcp host=10.0.0.5 holding:0:uint16 holding:10:float32
  collector read modbus_tcp host=10.0.0.5 port=1502 unit=3 order=CDAB input:100:int32 --json
  collector read modbus_tcp host=10.0.0.5 coil:0 --count 10 --interval 500ms
${EXIT_CODES}`,
    )
    .action(async (type: string, words: string[], options: ReadOptions) => {
      exit = await (await import("./read.ts")).read(type, words, options, io);
    });

  const secret = program.command("secret").description("Keep the secrets of data sources and data sinks on this machine.");
  secret
    .command("set")
    .description("Keep a secret and hand it to the running service at once. Asks for it; it is never an argument.")
    .argument("<entry>", "name or uuid of the data source or data sink; <entry>/users/<user> for a user of a hosted OPC UA server")
    .option(...CONFIG)
    .option("--stdin", "take the first line of stdin instead of asking")
    .addHelpText(
      "after",
      `
Encrypted where systemd has a TPM or a host key of this machine; for root alone in any case.

Examples:
  sudo collector secret set press-1
  sudo collector secret set plant-broker --stdin < password.txt
  sudo collector secret set opcua-server/users/scada`,
    )
    .action(async (entry: string, options: SecretOptions) => {
      exit = await (await import("./secret.ts")).secretSet(entry, options, io);
    });
  secret
    .command("list")
    .description("Name those whose secrets are kept; never what they are.")
    .option(...CONFIG)
    .option("--json", "print one JSON array")
    .addHelpText("after", "\nExamples:\n  sudo collector secret list")
    .action(async (options: SecretOptions) => {
      exit = await (await import("./secret.ts")).secretList(options, io);
    });
  secret
    .command("rm")
    .description("Forget a secret, here and in the running service.")
    .argument("<entry>", "name or uuid, as the list shows it")
    .option(...CONFIG)
    .addHelpText("after", "\nExamples:\n  sudo collector secret rm press-1")
    .action(async (entry: string, options: SecretOptions) => {
      exit = await (await import("./secret.ts")).secretRemove(entry, options, io);
    });

  const done = (code: ExitCode): void => {
    exit = code;
  };
  addApiVerbs(program, CONFIG, io, done);
  addPkiVerbs(program, CONFIG, io, done);

  return { command: program, exit: () => exit };
}

/** Runs the verb that `args` (without node and script) name; gives the exit code. What a person did wrong is said on stderr. */
export async function parseCommandLine({ command, exit }: Program, args: readonly string[], io: CommandIo): Promise<ExitCode> {
  try {
    await command.parseAsync([...args], { from: "user" });
    return exit();
  } catch (error) {
    // Commander has printed its message by then; help and version end with 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.good : EXIT.usage;
    if (!(error instanceof UsageError)) throw error;
    complain(io, error.message);
    return EXIT.usage;
  }
}
