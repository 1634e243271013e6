/** Columns of the count: what the collector runs, stand-ins of machines, tools of the workbench, tests. */
export const COLUMNS = ["production", "simulators", "workbench", "tests"] as const;
export type Column = (typeof COLUMNS)[number];

/** Lines by column. */
export type Lines = Readonly<Record<Column, number>>;

/** A file of TypeScript: its path from the root of the project, with slashes, and its number of lines. */
export interface CountedFile {
  readonly path: string;
  readonly lines: number;
}

const NO_LINES: Lines = { production: 0, simulators: 0, workbench: 0, tests: 0 };

/** Folders of the workbench, the latter where its package is going to be. */
const WORKBENCH = /^(src\/commands\/replay|workbench)\//;
const TEST = /^test\/|\.test\.ts$|\/testing\/|\/testing[^/]*\.ts$/;
const SIMULATOR = /^simulators\/|^drivers\/([^/]+\/)?simulator[^/]*(\/|$)/;

/** The column that counts a file; a test of a simulator or of the workbench is a test. Pure. */
export function columnOf(path: string): Column {
  if (TEST.test(path)) return "tests";
  if (WORKBENCH.test(path)) return "workbench";
  return SIMULATOR.test(path) ? "simulators" : "production";
}

/** The room of a file: `src/agent`, `drivers/s7`, `gateway`; `src`, `drivers` or `.` for a file that lies directly in there. Pure. */
export function roomOf(path: string): string {
  const folders = path.split("/").slice(0, -1);
  const depth = folders[0] === "src" || folders[0] === "drivers" ? 2 : 1;
  return folders.slice(0, depth).join("/") || ".";
}

/** Lines by room, sorted by the room's name. Pure. */
export function byRoom(files: readonly CountedFile[]): ReadonlyMap<string, Lines> {
  const rooms = new Map<string, Lines>();
  for (const { path, lines } of files) {
    const room = roomOf(path);
    const column = columnOf(path);
    const before = rooms.get(room) ?? NO_LINES;
    rooms.set(room, { ...before, [column]: before[column] + lines });
  }
  return sorted(rooms);
}

/** The lines that each room has more than before, below zero where it has fewer; rooms without a difference are left out. Pure. */
export function difference(now: ReadonlyMap<string, Lines>, before: ReadonlyMap<string, Lines>): ReadonlyMap<string, Lines> {
  const rooms = new Map<string, Lines>();
  for (const room of new Set([...now.keys(), ...before.keys()])) {
    const [there, was] = [now.get(room) ?? NO_LINES, before.get(room) ?? NO_LINES];
    const lines = linesOf((column) => there[column] - was[column]);
    if (COLUMNS.some((column) => lines[column] !== 0)) rooms.set(room, lines);
  }
  return sorted(rooms);
}

/** The sum of all rooms. Pure. */
export const sumOf = (rooms: ReadonlyMap<string, Lines>): Lines =>
  linesOf((column) => [...rooms.values()].reduce((sum, lines) => sum + lines[column], 0));

/** The number of lines of a text, one without a line's end at its end included. Pure. */
export function countLines(text: string): number {
  const ends = text.split("\n").length - 1;
  return text === "" || text.endsWith("\n") ? ends : ends + 1;
}

const linesOf = (count: (column: Column) => number): Lines => ({
  production: count("production"),
  simulators: count("simulators"),
  workbench: count("workbench"),
  tests: count("tests"),
});

const sorted = (rooms: ReadonlyMap<string, Lines>): ReadonlyMap<string, Lines> =>
  new Map([...rooms].sort(([one], [other]) => (one < other ? -1 : 1)));
