import { resolve } from "node:path";
import { shellWord } from "../base/shell-word.ts";
import { DEFAULT_SETTINGS_FILE } from "../configuration/settings-file.ts";

/** Words that go in the place of a command that failed for want of rights. */
export const AGAIN_WITH_SUDO = "type the command with sudo";

/** The command line of a verb. */
export interface Typed {
  /** Words behind the program's name. */
  readonly words: readonly string[];
  /** Settings file that `-c` names; absent: the settings are at their usual place. */
  readonly config?: string | undefined;
  /** Names of verbs, groups before their own (`source set`). */
  readonly verbs: readonly string[];
}

/**
 * A text for people with each command in it as this person has to type it: with the settings file that this command line named, and the
 * whole command again where it needs root. Pure.
 */
export function commandsAsTyped(text: string, typed: Typed | undefined): string {
  if (!typed) return text;
  const again = ["sudo collector", ...typed.words.map((word) => shellWord(word, "…"))].join(" ");
  return withConfig(text, typed).replaceAll(AGAIN_WITH_SUDO, `type \`${again}\``);
}

function withConfig(text: string, { config, verbs }: Typed): string {
  if (config === undefined || resolve(config) === DEFAULT_SETTINGS_FILE) return text;
  const names = verbs.toSorted((a, b) => b.length - a.length).join("|");
  // In prose, an article is before the program's name.
  const named = `\\bcollector (?:${names})(?![\\w-])`;
  const command = new RegExp(
    `(?<!\\b(?:[Tt]he|[Tt]his|[Aa]|own|each|another|whole) )${named}(?![^\\x60;,\\n]{0,200}? (?:-c|--config) )`,
    "g",
  );
  return text.replace(command, (words) => `${words} -c ${shellWord(config, "FILE")}`);
}
