/** Takes apart what `collector status` prints. */

/** The commands between backticks, in their order. Pure. */
export const commandsIn = (text: string): readonly string[] => [...text.matchAll(/`([^`\n]+)`/g)].flatMap(([, command]) => command ?? []);

/** What is about the service itself: all before the table of the data sources. Pure. */
export const headerOf = (text: string): string => text.split(/\n\n/, 1)[0] ?? "";

/** The paragraphs about one data source or data sink; those of several with one cause are of each of them. Pure. */
export const partOf = (text: string, name: string): string =>
  text
    .split("\n\n")
    .filter((paragraph) => paragraph.startsWith(`${name}:`) || / {2}Sources: +(.*)\n/.exec(paragraph)?.[1]?.split(", ").includes(name))
    .join("\n\n");

/** What the tables have in the column STATE. Pure. */
export const stateOf = (text: string, name: string): string | undefined =>
  text
    .split("\n")
    .find((line) => line.startsWith(`${name} `))
    ?.split(/ +/)[3];

/** What changes from one look to the next: figures that are measured and counted, and which of the refused topics is named. */
const CHANGING = [
  [/\bhall-3\/[\w-]+/g, "hall-3/…"],
  [/\d+(\.\d+)?/g, "#"],
] as const;

/** A text as it is compared between exits: one line, without what a table or another typeface says elsewhere, and without what changes. Pure. */
export const comparable = (text: string): string =>
  CHANGING.reduce((sum, [what, by]) => sum.replace(what, by), text.replaceAll("`", "").replace(/:?\s+/g, " ").trim());

/** Labels whose text is a time. */
const TIMES = /^ +(Since|Next try):/;

/** The sentences of a part of the status, comparable, without their labels and without times. Pure. */
export const sentencesIn = (part: string): readonly string[] =>
  part
    .split("\n")
    .filter((line) => !TIMES.test(line))
    .map((line) => comparable(line.replace(/^[\w-]+:(?= |$)|^ +(Detail|Cause|Next step|Note): +/, "")))
    .filter((sentence) => sentence !== "");

/** What the header says of alarms and of what is wrong with the configuration, with the next steps. Pure. */
export const troubleIn = (header: string): string =>
  header
    .split("\n")
    .filter((line) => /^(ALARM: | +)/.test(line))
    .join("\n");
