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
