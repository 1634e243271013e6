import { toJson } from "../base/json.ts";
import { escapeControls, withoutCredentials } from "../base/plain-text.ts";
import type { CommandIo } from "./io.ts";
import { commandsAsTyped } from "./printed-commands.ts";

/** Prints lines for people: control characters of any origin are escaped, URLs have no user and password. */
export const writeLines = ({ stdout, typed }: Pick<CommandIo, "stdout" | "typed">, lines: readonly string[]): void =>
  void stdout.write(`${lines.map((line) => commandsAsTyped(escapeControls(withoutCredentials(line)), typed)).join("\n")}\n`);

/** Fields of our answers that hold sentences; values of devices are in others. */
const SENTENCES: ReadonlySet<string> = new Set(["next_step", "detail", "text", "message"]);

/** Prints a value as JSON, on one line; its sentences have commands as this person has to type them. */
export const writeJson = (
  { stdout, typed }: Pick<CommandIo, "stdout" | "typed">,
  value: unknown,
  replace: (value: unknown) => unknown = (one) => one,
): void => {
  const asTyped = (one: unknown, field: string): unknown =>
    typeof one === "string" && SENTENCES.has(field) ? commandsAsTyped(one, typed) : one;
  stdout.write(`${toJson(value, (one, field) => asTyped(replace(one), field))}\n`);
};

/** Columns of a terminal that every output fits. */
export const COLUMNS = 80;

/**
 * A text in lines of at most so many columns, broken at blanks outside backticks, the later ones indented. A longer word or command has a
 * line of its own. Pure.
 */
export function wrapped(text: string, indent: string, columns = COLUMNS): readonly string[] {
  const begin = /^ */.exec(text)?.[0] ?? "";
  const kept = text.slice(begin.length).replace(/`[^`]*`/g, (command) => command.replaceAll(" ", "\0"));
  const [first = "", ...words] = kept.split(" ").map((word) => word.replaceAll("\0", " "));
  const lines: string[] = [];
  let line = begin + first;
  for (const word of words) {
    if (line.length + 1 + word.length > columns) {
      lines.push(line);
      line = indent + word;
    } else line = `${line} ${word}`;
  }
  return [...lines, line];
}

/** `a, b, c, … 4 more`, within so many columns; one name at least. Pure. */
export function namesWithin(names: readonly string[], columns: number): string {
  let shown = names[0] ?? "";
  for (let i = 1; i < names.length; i++) {
    const longer = `${shown}, ${names[i]}`;
    const rest = names.length - i - 1;
    if (longer.length + (rest > 0 ? `, … ${rest} more`.length : 0) > columns) return `${shown}, … ${names.length - i} more`;
    shown = longer;
  }
  return shown;
}
