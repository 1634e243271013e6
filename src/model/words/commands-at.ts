import { shellWord } from "../../base/shell-word.ts";

/** Settings that commands in texts for people have to name, because they are not at their usual place. */
export interface SettingsToName {
  /** Path of the settings file. */
  readonly config: string;
  /** Names of the verbs, groups before their own (`source set`). */
  readonly verbs: readonly string[];
}

/** Verbs stay the same for the life of a process. */
const COMMANDS = new WeakMap<readonly string[], RegExp>();

/** The beginning of each command that names no settings. In prose, an article is before the program's name. */
function commandOf(verbs: readonly string[]): RegExp {
  const known = COMMANDS.get(verbs);
  if (known) return known;
  const names = verbs.toSorted((a, b) => b.length - a.length).join("|");
  const named = `\\bcollector (?:${names})(?![\\w-])`;
  const command = new RegExp(
    `(?<!\\b(?:[Tt]he|[Tt]his|[Aa]|own|each|another|whole) )${named}(?![^\\x60;,\\n]{0,200}? (?:-c|--config) )`,
    "g",
  );
  COMMANDS.set(verbs, command);
  return command;
}

/** A text with the settings in each command of ours. `inPlace`: how the text around them has a path, such as JSON or HTML. Pure. */
export function commandsAt(text: string, { config, verbs }: SettingsToName, inPlace: (path: string) => string = (path) => path): string {
  if (!text.includes("collector ")) return text;
  const option = ` -c ${inPlace(shellWord(config, "FILE"))}`;
  return text.replace(commandOf(verbs), (words) => words + option);
}
