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
    ".SH EXIT STATUS",
    ...tagged(EXIT_STATUS, "B"),
    ".SH SIGNALS",
    ...tagged(SIGNALS, "B"),
    ".SH ENVIRONMENT",
    ...tagged(ENVIRONMENT, "B"),
    ".SH FILES",
    ...tagged(FILES, "I"),
    ".SH NOTES",
    ...NOTES.flatMap((text) => [".PP", roff(text)]),
    ".SH SEE ALSO",
    ".BR systemctl (1),",
    ".BR journalctl (1),",
    ".BR systemd-creds (1)",
  ];
  return `${lines.filter((line) => line !== "").join("\n")}\n`;
}

const tagged = (entries: readonly (readonly [tag: string, text: string])[], font: "B" | "I"): readonly string[] =>
  entries.flatMap(([tag, text]) => [".TP", `.${font} ${roff(tag)}`, roff(text)]);

const EXIT_STATUS = [
  ["0", "Good."],
  ["1", "Some variable is bad."],
  ["2", "The command line or the settings are wrong; stderr says where, and what would be right."],
  ["3", "A data source failed; its reason is printed."],
  ["4", "The collector itself failed."],
  ["130", "Interrupted before there was a result."],
] as const;

const SIGNALS = [
  ["SIGTERM, SIGINT", "collector run writes what was read to disk, and ends; a second one ends it at once. Every other verb ends."],
  ["SIGHUP", "collector run reads settings and policy again, as systemctl reload collector does."],
] as const;

const ENVIRONMENT = [
  [
    "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY",
    "The proxy to the configuration API where the settings name none (api.proxy). Lower case wins.",
  ],
  ["CREDENTIALS_DIRECTORY", "Secrets that systemd hands over (LoadCredential= of the unit)."],
  ["NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID", "The service manager's socket for readiness, status and watchdog."],
  ["JOURNAL_STREAM", "Set by systemd where the log goes to the journal; each line has its priority then."],
  ["XDG_STATE_HOME, HOME", "Where read and browse keep certificates of a person who may not write to the state folder."],
] as const;

const FILES = [
  ["/etc/collector/collector.yaml", "The settings; collector help settings explains every key."],
  ["/etc/collector/policy.yaml", "Where the collector may connect and listen; collector help policy."],
  ["/etc/collector/variables/", "Local variable files, one for each data source: its name or uuid, .csv or .yaml."],
  ["/etc/collector/credentials/", "Secrets, one file each, for root alone."],
  ["/etc/collector/credentials.encrypted/", "Secrets that are encrypted for this machine."],
  ["/var/lib/collector/", "The state folder (state_dir): what follows."],
  ["/var/lib/collector/buffer.db", "Values that wait for a data sink."],
  ["/var/lib/collector/captures/", "What failed data sources exchanged with their devices before, for Wireshark."],
  ["/var/lib/collector/last-good.json", "The last good configuration of the API."],
  [
    "/var/lib/collector/last-good-settings.json, last-good-policy.json",
    "Settings and policy as they could be used last, for a start at which they cannot.",
  ],
  [
    "/var/lib/collector/variable-files-last-good/",
    "The variable file that each data source took last, for when its own is emptied or broken off; variable-files.json says which it was.",
  ],
  ["/var/lib/collector/keys/", "Keys of the embedded configuration API."],
  ["/var/lib/collector/pki/", "Certificates for OPC UA; collector help certificates."],
  ["/usr/share/doc/collector/", "Examples of settings, policy and drop-ins for the unit; what is inside (sbom.cdx.json)."],
] as const;

const NOTES = [
  "The package is for Debian 12 and newer, and for Ubuntu 24.04 and newer: its unit takes secrets from a folder and systemd-creds decrypts them, which systemd has since version 250. Ubuntu 22.04 has systemd 249, and Debian 11 has 247. There the unit would need one LoadCredential= line for each secret and secrets that are not encrypted; everything else that the program needs (glibc 2.28, libstdc++ 9, perl-base) is there.",
  "What a site needs offline is inside: collector help lists its topics.",
] as const;

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

/** What arguments may be, beyond the words of the command line. */
export interface KnownWords {
  /** Keys by type of data source, as they are typed. */
  readonly sources: Readonly<Record<string, readonly string[]>>;
  readonly sinks: Readonly<Record<string, readonly string[]>>;
  readonly topics: readonly string[];
}

/** What completes one argument: names of entries (which the collector is asked for), types, keys, topics, or files. */
type Completes = "source" | "sink" | "entry" | "source-type" | "sink-type" | "source-or-type" | "keys" | "topic" | "file";

/** By the verb and the argument's name; undefined: anything may stand there. */
function completes(words: readonly string[], argument: string): Completes | undefined {
  const verb = words.slice(1).join(" ");
  const group = words[1];
  if (verb === "help") return "topic";
  if (argument === "source") return group !== undefined && ["browse", "probe", "read"].includes(group) ? "source-or-type" : "source";
  if (argument === "entry") return "entry";
  if (argument === "type") return group === "sink" ? "sink-type" : "source-type";
  if (argument === "name" && /^(source|sink) (set|rm)$/.test(verb)) return group === "sink" ? "sink" : "source";
  if (argument === "fields" || argument === "words") return "keys";
  return /^(file|certificate|key|capture)$/.test(argument) ? "file" : undefined;
}

/** Completion for bash: verbs, their options, names of data sources and sinks, types, keys of details, topics; files where one is taken. */
export function bashCompletion(program: Command, known: KnownWords = { sources: {}, sinks: {}, topics: [] }): string {
  const name = program.name();
  const all = verbsOf(program, [name]);
  const cases = all.map(({ words, command }) => {
    const next = [...command.commands.map((inner) => inner.name()), ...command.options.flatMap(flagsOf), "--help"];
    const kinds = command.registeredArguments.map((argument) => completes(words, argument.name()) ?? "-");
    // The last one stands for all that follow.
    const rest = command.registeredArguments.at(-1)?.variadic ? [] : ["-"];
    const wanted = ` kinds=(${[...kinds, ...rest].join(" ")})`;
    return `    ${quote(words.slice(1).join(" "))}) words=${quote(next.join(" "))}${wanted} ;;`;
  });
  const fileFlags = [...new Set(all.flatMap(({ command }) => command.options.filter(takesFile).flatMap(flagsOf)))];
  const verbs = all.map(({ words }) => quote(words.slice(1).join(" "))).filter((words) => words !== "''");
  const keys = [...Object.entries(known.sources), ...Object.entries(known.sinks).map(([type, of]) => [`sink ${type}`, of] as const)];
  return `# bash completion for ${name}, from its command line's definition
# The first column of a list: names, which may hold blanks.
_${name}_names() {
  ${name} "$1" list 2>/dev/null | awk 'NR == 1 { width = index($0, "TYPE") - 1; if (width < 1) exit; next } { name = substr($0, 1, width); sub(/ +$/, "", name); print name }'
}
_${name}_keys() {
  case $1 in
${keys.map(([type, of]) => `    ${quote(type)}) printf '%s=\\n' ${of.join(" ")} ;;`).join("\n")}
  esac
}
_${name}() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} verb= next words kinds=(-) kind i at=0 depth=1 found=() one IFS=$' \\t\\n'
  case $before in
    ${fileFlags.join("|")}) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    =) return ;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="\${verb:+$verb }\${COMP_WORDS[i]}"
    case $next in
      ${verbs.join("|")}) verb=$next depth=$((i + 1)) ;;
      *) break ;;
    esac
  done
  case $verb in
${cases.join("\n")}
  esac
  # The place of the word among the arguments; options stand anywhere.
  for ((i = depth; i < COMP_CWORD; i++)); do [[ \${COMP_WORDS[i]} == -* ]] || at=$((at + 1)); done
  kind=\${kinds[at < \${#kinds[@]} ? at : \${#kinds[@]} - 1]}
  [[ $word == -* ]] && kind=
  case $kind in
    source|sink) mapfile -t found < <(_${name}_names "$kind") ;;
    entry) mapfile -t found < <(_${name}_names source; _${name}_names sink) ;;
    source-or-type) mapfile -t found < <(_${name}_names source; printf '%s\\n' ${Object.keys(known.sources).join(" ")}) ;;
    source-type) found=(${Object.keys(known.sources).join(" ")}) ;;
    sink-type) found=(${Object.keys(known.sinks).join(" ")}) ;;
    topic) found=(${[...known.topics, ...program.commands.map((inner) => inner.name())].join(" ")}) ;;
    keys)
      local prefix=; [[ $verb == sink* ]] && prefix='sink '
      for ((i = depth; i < COMP_CWORD; i++)); do mapfile -t -O "\${#found[@]}" found < <(_${name}_keys "$prefix\${COMP_WORDS[i]}"); done
      compopt -o nospace 2>/dev/null ;;
    file) return ;;
  esac
  if [[ \${#found[@]} -gt 0 ]]; then
    COMPREPLY=()
    for one in "\${found[@]}"; do [[ $one == "$word"* ]] && COMPREPLY+=("$(printf '%q' "$one")"); done
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _${name} ${name}
`;
}

const flagsOf = ({ short, long }: Option): string[] => [short, long].filter((flag) => flag !== undefined);
const takesFile = ({ flags }: Option): boolean => /<(file|folder|path)>/i.test(flags);
const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
