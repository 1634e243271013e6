import { Command, CommanderError } from "commander";
import { addApiVerbs } from "./api-program.ts";
import type { BrowseOptions } from "./browse.ts";
import { type CommandIo, complain, EXIT, type ExitCode, StoppedError, UsageError } from "./io.ts";
import { addPkiVerbs } from "./pki-program.ts";
import type { ReadOptions } from "./read.ts";
import type { SecretOptions } from "./secret.ts";
import { CONFIG, EXIT_CODES, JSON_ARRAY, JSON_OBJECT, KEY_FILE, PASSWORD_FILE } from "./verb.ts";

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
    .option(...JSON_OBJECT)
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
    .option(...PASSWORD_FILE)
    .option(
      "-c, --config <file>",
      "settings file (default: /etc/collector/collector.yaml); only policy.yaml beside it and state_dir are looked at",
    )
    .addHelpText(
      "after",
      `
What follows the last colon of an address is its type only if it is one. For opcua, endpoint_url is enough: None and Anonymous
unless given; the password of a username is asked for, or comes from --password-file. A server's certificate that nobody trusts yet
is named with its thumbprint and the command that trusts it; trust=first_use takes the first one that the server shows.

Examples:
  collector read modbus_tcp host=10.0.0.5 holding:0:uint16 holding:10:float32
  collector read modbus_tcp host=10.0.0.5 port=1502 unit=3 order=CDAB input:100:int32 --json
  collector read modbus_tcp host=10.0.0.5 coil:0 --count 10 --interval 500ms
  collector read opcua endpoint_url=opc.tcp://10.0.0.7:4840 i=2258 'ns=2;s=Press.Temperature'
  collector read opcua endpoint_url=opc.tcp://10.0.0.7 username=reader 'nsu=http://example.com/press;s=Counter'
  collector read opcua endpoint_url=opc.tcp://10.0.0.7 security_settings.security_mode=SignAndEncrypt \\
    security_settings.endpoint_security_policy=Basic256Sha256 trust=first_use /Objects/2:Press/2:Temperature
${EXIT_CODES}`,
    )
    .action(async (type: string, words: string[], options: ReadOptions) => {
      exit = await (await import("./read.ts")).read(type, words, options, io);
    });

  program
    .command("browse")
    .description("Ask a device what variables it has.")
    .argument("<source>", "name of a data source, or the type of a device that is not configured")
    .argument("[words...]", "key=value pairs for such a device: connection details and the driver's settings")
    .option("--json", "print one JSON object a line, as they are found")
    .option("--csv", "print the variables as collector variables import takes them")
    .option("--depth <n>", "only so many levels")
    .option("--filter <text>", "only what has this in its name, path or address; * stands for anything")
    .option("--timeout <duration>", "end after this with what was found", "10min")
    .option(...PASSWORD_FILE)
    .option(...KEY_FILE)
    .option(...CONFIG)
    .addHelpText(
      "after",
      `
Nothing but what a device tells is asked for, and nothing is changed. Ctrl-C ends it with what was found until then.

Examples:
  collector browse opcua endpoint_url=opc.tcp://10.0.0.7:4840
  collector browse press-1 --depth 3
  collector browse press-1 --filter temperature --json
  collector browse press-1 --csv > press-1.csv     look it over, then: collector variables import press-1 press-1.csv
  collector browse press-1 --filter 'Line1/*' --csv | collector variables import press-1 -
${EXIT_CODES}`,
    )
    .action(async (source: string, words: string[], options: BrowseOptions) => {
      exit = await (await import("./browse.ts")).browse(source, words, options, io);
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
    .option(...JSON_ARRAY)
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
  addApiVerbs(program, io, done);
  addPkiVerbs(program, io, done);

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
    if (error instanceof StoppedError) return EXIT.interrupted;
    if (!(error instanceof UsageError)) throw error;
    complain(io, error.message);
    return EXIT.usage;
  }
}
