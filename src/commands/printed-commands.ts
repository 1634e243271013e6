import { resolve } from "node:path";
import { shellWord } from "../base/shell-word.ts";
import { DEFAULT_SETTINGS_FILE } from "../configuration/settings-file.ts";
import { commandsAt, type SettingsToName } from "../model/words/commands-at.ts";

/** Words that go in the place of a command that failed for want of rights. */
export const AGAIN_WITH_SUDO = "type the command with sudo";

/** The command line of a verb. */
export interface Typed extends Pick<SettingsToName, "verbs"> {
  /** Words behind the program's name. */
  readonly words: readonly string[];
  /** Settings file that `-c` names; absent: the settings are at their usual place. */
  readonly config?: string | undefined;
}

/**
 * A text for people with each command in it as this person has to type it: with the settings file that this command line named, and the
 * whole command again where it needs root. Pure.
 */
export function commandsAsTyped(text: string, typed: Typed | undefined): string {
  if (!typed) return text;
  const { config, verbs, words } = typed;
  const again = ["sudo collector", ...words.map((word) => shellWord(word, "…"))].join(" ");
  const isUsual = config === undefined || resolve(config) === DEFAULT_SETTINGS_FILE;
  return (isUsual ? text : commandsAt(text, { config, verbs })).replaceAll(AGAIN_WITH_SUDO, `type \`${again}\``);
}

/** The settings that a service names in the commands of its log and its page, wherever they are typed; undefined: they are at their usual place. */
export function settingsToName(typed: Typed | undefined): SettingsToName | undefined {
  const config = typed?.config === undefined ? undefined : resolve(typed.config);
  return typed && config !== undefined && config !== DEFAULT_SETTINGS_FILE ? { config, verbs: typed.verbs } : undefined;
}
