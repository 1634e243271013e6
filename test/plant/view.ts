import { stripVTControlCharacters, styleText } from "node:util";
import type { ServiceStatusJson } from "../support/collector-process.ts";

/** What the demo shows at one moment. */
export interface Picture {
  readonly elapsedS: number;
  readonly pageUrl: string;
  readonly apiUrl: string;
  readonly brokerUrl: string;
  readonly opcuaUrl: string;
  readonly status: ServiceStatusJson | undefined;
  /** Newest value of each variable as it came from the broker. */
  readonly values: readonly {
    readonly source: string;
    readonly variable: string;
    readonly text: string;
    readonly ageMs: number;
    readonly bad: boolean;
  }[];
  readonly messages: number;
  readonly news: readonly string[];
  /** Lines of the collector's own log, newest last. */
  readonly log: readonly string[];
}

type Style = Parameters<typeof styleText>[0];
const pad = (text: string, width: number): string => (text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width));

/** Widths of the columns of data sources: name, type, endpoint, state, readouts, values. */
const WIDE = [14, 15, 18, 22, 10, 9];
const NARROW = [12, 11, 16, 19, 7, 6];
/** From this width on. */
const WIDE_FROM = 100;

/** How much room there is; no `rows`: as much as it takes, and long lines of the log are wrapped. */
export interface Room {
  readonly columns: number;
  readonly rows?: number;
}

/** The picture as lines of text: tables first, the log last. None is longer than the columns, and with rows there are no more than those. */
export function draw(picture: Picture, room: Room, colour: boolean): readonly string[] {
  // Who asks for colours gets them, wherever they go.
  const paint: Paint = (style, text) => (colour ? styleText(style, text, { validateStream: false }) : text);
  const { columns, rows } = room;
  const { pageUrl, apiUrl, brokerUrl, opcuaUrl } = picture;
  const where =
    columns >= WIDE_FROM ? `page ${pageUrl} · API ${apiUrl} · MQTT ${brokerUrl} · OPC UA ${opcuaUrl}` : `${pageUrl} · API ${apiUrl}`;
  const title = paint("bold", `collector demo · ${picture.elapsedS.toFixed(0)} s · ${where}`);
  const sources = sourceLines(picture, columns, paint);
  const sinks = sinkLines(picture, paint);
  const values = valueLines(picture, paint);
  const news = picture.news.map((line) => paint("magenta", line));
  if (rows === undefined) {
    const log = picture.log.slice(-LOG_LINES).flatMap((line) => wrap(line, columns));
    const all = [title, "", ...sources, "", ...sinks, "", ...values, "", ...news, paint("dim", "the collector's log:")];
    return [...all.map((line) => clip(line, columns)), ...log];
  }
  const gap = rows > MANY_ROWS ? [""] : [];
  const above = [title, ...gap, ...sources, ...gap, ...sinks, ...gap];
  const log = picture.log.slice(-LOG_LINES);
  const below = [...gap, ...news.slice(-1), ...log];
  const left = Math.max(VALUE_LINES, rows - above.length - below.length);
  const shown = values.length > left ? [...values.slice(0, left - 1), paint("dim", `and ${values.length - left + 1} more`)] : values;
  const fewer = below.slice(-Math.max(1, rows - above.length - shown.length));
  return [...above, ...shown, ...fewer].slice(0, rows).map((line) => clip(line, columns));
}

const LOG_LINES = 6;
/** Header and two values, on the smallest of screens. */
const VALUE_LINES = 4;
/** Enough for lines between the tables. */
const MANY_ROWS = 32;

type Paint = (style: Style, text: string) => string;

function sourceLines({ status }: Picture, columns: number, paint: Paint): readonly string[] {
  const [name = 0, type = 0, endpoint = 0, state = 0, readouts = 0, values = 0] = columns >= WIDE_FROM ? WIDE : NARROW;
  const isWide = columns >= WIDE_FROM;
  const head = `${pad("DATA SOURCE", name)}${pad("TYPE", type)}${pad("ENDPOINT", endpoint)}${pad("STATE", state)}`;
  const numbers = isWide ? `${pad("READOUTS", readouts)}${pad("VALUES", values)}` : `${pad("READS", readouts)}${pad("VALUES", values)} `;
  const lines = [paint("dim", `${head}${numbers}${isWide ? "FAULTED NOW" : "FAULTED"}`)];
  for (const source of status?.sources ?? []) {
    const { state: now } = source.status;
    const word = now.type === "ERROR" ? (now.reason?.type ?? "ERROR") : now.type;
    const faults = source.faults.map((f) => `${f.variable}: ${f.fault}`).join(", ");
    lines.push(
      pad(source.name, name) +
        pad(source.type, type) +
        pad(source.endpoint ?? "", endpoint) +
        paint(now.type === "OK" ? "green" : now.type === "ERROR" ? "red" : "dim", pad(word, state)) +
        pad(String(source.counters.readouts), readouts) +
        pad(String(source.counters.values_read), values) +
        paint("yellow", isWide || faults === "" ? faults : ` ${faults}`),
    );
  }
  return lines;
}

function sinkLines({ status }: Picture, paint: Paint): readonly string[] {
  const lines = [
    paint("dim", `${pad("DATA SINK", 14)}${pad("TYPE", 15)}${pad("STATE", 14)}${pad("DELIVERED", 12)}${pad("PENDING", 10)}DROPPED`),
  ];
  for (const sink of status?.sinks ?? []) {
    const dropped = droppedOf(sink.ledger?.dropped ?? {});
    lines.push(
      pad(sink.name ?? sink.uuid, 14) +
        pad(sink.type, 15) +
        paint(sink.state === "OK" ? "green" : "red", pad(sink.state, 14)) +
        (sink.ledger
          ? pad(String(sink.ledger.delivered), 12) +
            pad(String(sink.ledger.pending), 10) +
            paint(dropped === 0 ? "dim" : "red", String(dropped))
          : paint("dim", "current values only")),
    );
  }
  return lines;
}

const valueLines = ({ values }: Picture, paint: Paint): readonly string[] => [
  paint("dim", `${pad("VALUE FROM THE BROKER", 36)}${pad("", 26)}AGE`),
  ...values.map(
    (value) =>
      pad(`${value.source} / ${value.variable}`, 36) +
      paint(value.bad ? "yellow" : "cyan", pad(value.text, 26)) +
      paint("dim", `${(value.ageMs / 1000).toFixed(1)} s`),
  ),
];

/** At most `width` characters of a line, its colours aside: whole words and `…`; a word that takes more than half of the line is cut. */
export function clip(line: string, width: number): string {
  const characters = [...stripVTControlCharacters(line)];
  if (characters.length <= width) return line;
  const blank = characters.lastIndexOf(" ", width - 2);
  const kept = blank < width / 2 ? width - 1 : blank + 1;
  let n = 0;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what the escape sequences begin with
  return line.replace(/\x1b\[\d+m|[^\x1b]/gsu, (piece) => {
    if (piece.startsWith("\x1b")) return piece;
    n++;
    return n <= kept ? piece : n === kept + 1 ? "…" : "";
  });
}

/** At blanks; a word that is longer than a line is cut. */
export const wrap = (line: string, width: number): readonly string[] =>
  line.match(new RegExp(`.{1,${width}}(?= |$)|[^ ]{1,${width}}`, "gu"))?.map((part) => part.trim()) ?? [];

export const droppedOf = (dropped: Readonly<Record<string, number>>): number => Object.values(dropped).reduce((sum, n) => sum + n, 0);
