import type { Command, Option } from "commander";

/** The man page and the shell completion, from the command line's own definition. Pure. */

/** A verb with the words that call it, the program's own first. */
interface Verb {
  readonly words: readonly string[];
  readonly command: Command;
}

function verbsOf(command: Command, words: readonly string[]): readonly Verb[] {
  return [{ words, command }, ...command.commands.flatMap((inner) => verbsOf(inner, [...words, inner.name()]))];
}

/** collector(1) in man(7). `date` is the page's, as YYYY-MM-DD. */
export function manPage(program: Command, version: string, date: string): string {
  const name = program.name();
  const verbs = verbsOf(program, [name]).filter(({ command }) => command.commands.length === 0);
  const lines = [
    `.TH ${name.toUpperCase()} 1 ${date} "${name} ${version}"`,
    ".SH NAME",
    `${name} \\- ${lowerFirst(plain(program.description()).replace(/\.$/, ""))}`,
    ".SH SYNOPSIS",
    ...verbs.flatMap(({ words, command }, i) => [...(i === 0 ? [] : [".br"]), `.B ${roff(words.join(" "))}`, roff(usageOf(command))]),
    ".SH DESCRIPTION",
    roff(program.description()),
    ".SH OPTIONS",
    ...program.options.flatMap(optionLines),
    ...helpTail(program),
    ".SH COMMANDS",
    ...verbs.flatMap(({ words, command }) => [
      `.SS "${roff(`${words.slice(1).join(" ")} ${usageOf(command)}`.trim())}"`,
      roff(command.description()),
      ...command.registeredArguments.flatMap((argument) => [".TP", `.I ${roff(argument.name())}`, roff(argument.description)]),
      ...command.options.flatMap(optionLines),
      ...helpTail(command),
    ]),
    ".SH FILES",
    ...[
      ["/etc/collector/collector.yaml", "The settings."],
      ["/etc/collector/policy.yaml", "Where the collector may connect and listen."],
      ["/etc/collector/variables/", "Local variable files, one for each data source."],
      ["/etc/collector/credentials/", "Secrets, one file each, for root alone."],
      ["/etc/collector/credentials.encrypted/", "Secrets that are encrypted for this machine."],
      [
        "/var/lib/collector/",
        "The buffer, the last good configuration, keys, certificates, the embedded API's database and backups, and the local socket.",
      ],
    ].flatMap(([file = "", text = ""]) => [".TP", `.I ${roff(file)}`, roff(text)]),
    ".SH SEE ALSO",
    ".BR systemctl (1),",
    ".BR journalctl (1),",
    ".BR systemd-creds (1)",
  ];
  return `${lines.filter((line) => line !== "").join("\n")}\n`;
}

const usageOf = (command: Command): string =>
  [
    ...command.registeredArguments.map((a) =>
      a.required ? `<${a.name()}${a.variadic ? "..." : ""}>` : `[${a.name()}${a.variadic ? "..." : ""}]`,
    ),
    ...(command.options.length > 0 ? ["[options]"] : []),
  ].join(" ");

const optionLines = ({ flags, description, defaultValue }: Option): string[] => [
  ".TP",
  `.B ${roff(flags)}`,
  roff(`${description}${typeof defaultValue === "string" ? ` (default: ${defaultValue})` : ""}`),
];

/** Examples and exit codes: what the help adds after the generated part, as it stands there. */
function helpTail(command: Command): string[] {
  const parts: string[] = [];
  const own = command.configureOutput();
  command.configureOutput({ ...own, writeOut: (text) => void parts.push(text) });
  command.outputHelp();
  command.configureOutput(own);
  const tail = parts.join("").slice(command.helpInformation().length).trim();
  return tail === "" ? [] : [".PP", ".nf", ...tail.split("\n").map((line) => roff(line) || "\\&"), ".fi"];
}

/** Backslashes, hyphens and a dot or quote at the start of any line mean something to man. */
const roff = (text: string): string =>
  plain(text)
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("…", "...")
    .replaceAll("→", "\\(->")
    .replace(/^([.'])/gm, "\\&$1");

const plain = (text: string): string => text.replaceAll("\u00a0", " ");
const lowerFirst = (text: string): string => text.slice(0, 1).toLowerCase() + text.slice(1);

/** Completion for bash: verbs and their options; files after an option that takes one. */
export function bashCompletion(program: Command): string {
  const name = program.name();
  const cases = verbsOf(program, [name]).map(({ words, command }) => {
    const next = [...command.commands.map((inner) => inner.name()), ...command.options.flatMap(flagsOf), "--help"];
    return `    ${quote(words.slice(1).join(" "))}) words=${quote(next.join(" "))} ;;`;
  });
  const fileFlags = [...new Set(verbsOf(program, [name]).flatMap(({ command }) => command.options.filter(takesFile).flatMap(flagsOf)))];
  const verbs = verbsOf(program, [name])
    .map(({ words }) => quote(words.slice(1).join(" ")))
    .filter((words) => words !== "''");
  return `# bash completion for ${name}, from its command line's definition
_${name}() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} verb= next words i
  case $before in
    ${fileFlags.join("|")}) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="\${verb:+$verb }\${COMP_WORDS[i]}"
    case $next in
      ${verbs.join("|")}) verb=$next ;;
      *) break ;;
    esac
  done
  case $verb in
${cases.join("\n")}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _${name} ${name}
`;
}

const flagsOf = ({ short, long }: Option): string[] => [short, long].filter((flag) => flag !== undefined);
const takesFile = ({ flags }: Option): boolean => /<(file|folder|path)>/i.test(flags);
const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
