import { Command, CommanderError } from "commander";
import { withoutCredentials } from "../base/plain-text.ts";
import { PKI_VERBS } from "./certificates/pki-verbs.ts";
import { API_VERBS } from "./configuration/api-verbs.ts";
import { SECRET_VERBS } from "./configuration/secret-verbs.ts";
import { SINK_VERBS } from "./configuration/sink-verbs.ts";
import { SOURCE_VERBS } from "./configuration/source-verbs.ts";
import { VARIABLES_VERBS } from "./configuration/variables-verbs.ts";
import { BROWSE, CAPTURE, EXPLAIN, PLAN, PROBE, READ, WATCH } from "./device/verbs.ts";
import { FIND } from "./find/find-verb.ts";
import { topicList, topicText } from "./help-topics.ts";
import { type CommandIo, complain, EXIT, type ExitCode, StoppedError, UsageError } from "./io.ts";
import { PLUGIN_VERBS } from "./plugin/plugin-verbs.ts";
import type { Typed } from "./printed-commands.ts";
import { PROFILE_VERBS } from "./profile/profile-verbs.ts";
import { REPLAY } from "./replay/replay-verb.ts";
import { BUFFER_VERBS } from "./service/buffer-verbs.ts";
import { CHECK, DOCTOR, FLOWS, HEALTH, RUN, SETUP, STATUS, SUPPORT_BUNDLE, TAIL, VERIFY } from "./service/verbs.ts";
import { SIMULATE } from "./simulate/simulate-verb.ts";
import type { Option, Verb, VerbGroup } from "./verb.ts";

/** All verbs, in the order of the help. Each loads its code when it is called, so that `--version` loads no driver and no database. */
const VERBS: readonly (Verb | VerbGroup)[] = [
  RUN,
  STATUS,
  HEALTH,
  DOCTOR,
  CHECK,
  FLOWS,
  TAIL,
  SUPPORT_BUNDLE,
  READ,
  BROWSE,
  PROBE,
  FIND,
  PLAN,
  EXPLAIN,
  WATCH,
  CAPTURE,
  VERIFY,
  SECRET_VERBS,
  SOURCE_VERBS,
  SINK_VERBS,
  VARIABLES_VERBS,
  REPLAY,
  SIMULATE,
  PROFILE_VERBS,
  PLUGIN_VERBS,
  BUFFER_VERBS,
  SETUP,
  API_VERBS,
  PKI_VERBS,
];

const CONFIG: Option = { flags: "-c, --config <file>", description: "settings file (default: /etc/collector/collector.yaml)" };

const EXIT_CODES = `
Exit codes:
  0  good            1  some variable is bad     2  wrong command line or settings
  3  a source failed 4  the collector failed`;

/** What commander gives back of the words that it does not take, without users and passwords of addresses among them. */
const withoutUsers = (text: string): string => withoutCredentials(text).replace(/=[^\s=,]*@/g, "=[redacted]@");

/** The command line with its help. */
export interface Program {
  readonly command: Command;
  /** What the verb that was called ended with. */
  readonly exit: () => ExitCode;
  /** Takes what was typed, before it is parsed. */
  readonly take: (words: readonly string[]) => void;
  readonly typed: () => Typed;
}

export function createProgram(io: CommandIo): Program {
  let exit: ExitCode = EXIT.good;
  let typed: Typed = { words: [], verbs: NAMES };
  const program = new Command("collector")
    .description("Reads industrial machines and publishes their values.")
    .version(io.version, "--version", "print the version")
    .helpOption("-h, --help", "print this help")
    .showHelpAfterError("(collector --help lists the verbs, collector VERB --help explains one)")
    .showSuggestionAfterError(true)
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      outputError: (text, write) => write(withoutUsers(text)),
    })
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
  const call = async (verb: Verb, words: readonly unknown[]): Promise<void> => {
    // Commander gives what `usage` and the options of the same record describe, which is what `run` takes.
    const run = verb.run as (io: CommandIo, ...words: readonly unknown[]) => Promise<ExitCode>;
    typed = { ...typed, config: configIn(words.at(-1)) };
    // Inherited fields are opened where they are used, such as stdin.
    exit = await run(Object.create(io, { typed: { value: typed } }), ...words);
  };
  for (const entry of VERBS) addEntry(program, entry, call);
  addHelp(program, io);
  const take = (words: readonly string[]): void => {
    typed = { ...typed, words };
  };
  return { command: program, exit: () => exit, take, typed: () => typed };
}

/** `source set`, for each verb that takes settings. */
const namesOf = (entry: Verb | VerbGroup): readonly string[] =>
  "verbs" in entry ? entry.verbs.flatMap(namesOf).map((name) => `${entry.name} ${name}`) : [entry.usage.split(" ")[0] ?? ""];
const NAMES = VERBS.flatMap(namesOf);

/** The settings file among the options of a verb. */
function configIn(options: unknown): string | undefined {
  const config: unknown = typeof options === "object" && options !== null && "config" in options ? options.config : undefined;
  return typeof config === "string" ? config : undefined;
}

/** `collector help`: a verb's help as its --help prints it, or a topic's text. */
function addHelp(program: Command, io: CommandIo): void {
  program
    .helpCommand(false)
    .command("help")
    .argument("[words...]", "a verb, or a topic; without any: all of both")
    .description("Explain a verb, or a topic: a type of data source or data sink, settings, policy, certificates, api.")
    .addHelpText(
      "after",
      `\nTopics:\n${topicList()}\n\nExamples:\n  collector help modbus_tcp    keys, addresses, types, settings, errors\n  collector help source add\n  collector help settings | less`,
    )
    .action(async (words: readonly string[], _options: unknown, own: Command) => {
      const [first] = words;
      if (first === undefined) {
        own.outputHelp();
        return program.outputHelp();
      }
      const verb = words.reduce<Command | undefined>((at, word) => at?.commands.find((inner) => inner.name() === word), program);
      if (verb) return verb.outputHelp();
      if (words.length > 1) throw new UsageError(`help ${words.join(" ")}: there is no such verb; collector help lists them`);
      return void io.stdout.write(await topicText(first));
    });
}

type Call = (verb: Verb, words: readonly unknown[]) => Promise<void>;

function addEntry(parent: Command, entry: Verb | VerbGroup, call: Call): void {
  if ("verbs" in entry) {
    const group = parent.command(entry.name).description(entry.description);
    for (const inner of entry.verbs) addEntry(group, inner, call);
  } else addVerb(parent, entry, call);
}

function addVerb(parent: Command, verb: Verb, call: Call): void {
  const { usage, description, args = {}, examples, json = "print one JSON object", options = [], notes, showsExitCodes } = verb;
  const command = parent.command(usage).description(description).allowExcessArguments(false);
  const texts = [`\nExamples:\n${examples.map((example) => `  ${example}`).join("\n")}`];
  if (notes !== undefined) texts.push(`\n${notes}`);
  if (showsExitCodes) texts.push(EXIT_CODES);
  for (const text of texts) command.addHelpText("after", text);
  addOption(command, CONFIG);
  if (json !== false) command.option("--json", json);
  for (const option of options) addOption(command, option);
  command.showHelpAfterError(`(${wordsOf(command).join(" ")} --help explains it)`);
  for (const argument of command.registeredArguments) argument.description = args[argument.name()] ?? "";
  // Commander adds the command itself as the last word.
  command.action((...words: unknown[]) => call(verb, words.slice(0, -1)));
}

function addOption(command: Command, { flags, description, default: preset, required, repeats }: Option): void {
  if (repeats) command.option(flags, description, gather);
  else if (required) command.requiredOption(flags, description);
  else command.option(flags, description, preset);
}

const gather = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

/** The words that call it, the program's own first. */
const wordsOf = (command: Command): readonly string[] => [...(command.parent ? wordsOf(command.parent) : []), command.name()];

/** Runs the verb that `args` (without node and script) name; gives the exit code. Prints on stderr what the person did wrong. */
export async function parseCommandLine({ command, exit, take, typed }: Program, args: readonly string[], io: CommandIo): Promise<ExitCode> {
  take(args);
  try {
    await command.parseAsync([...args], { from: "user" });
    return exit();
  } catch (error) {
    // Commander has printed its message by then; help and version end with 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.good : EXIT.usage;
    if (error instanceof StoppedError) return EXIT.interrupted;
    if (!(error instanceof UsageError)) throw error;
    complain({ stderr: io.stderr, typed: typed() }, error.message);
    return EXIT.usage;
  }
}
