import { styleText } from "node:util";
import { escapeControls } from "../base/plain-text.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** One event as it is laid out: what pino wrote, read back. */
export interface LogRecord {
  readonly level: LogLevel;
  /** ISO 8601 UTC. */
  readonly time: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface TextStyle {
  readonly colour: boolean;
  /** Under journald: a `<priority>` in front (sd-daemon(3)), no time stamp, no colour. */
  readonly journald: boolean;
}

/** syslog(3) priorities. */
export const PRIORITY: Readonly<Record<LogLevel, number>> = { error: 3, warn: 4, info: 6, debug: 7 };
const COLOUR = { error: "red", warn: "yellow", info: "green", debug: "gray" } as const;

/** Fields with a place of their own in the line; everything else follows as key=value. `about` is for who looks lines up. */
const PLACED = ["level", "time", "msg", "source", "sink", "type", "endpoint", "nextRetryAt", "nextStep", "detail", "err", "about"];
/** These describe the current state, which an info or debug line does not: there they are fields like others. */
const STATE = ["reason", "condition", "since"];

/**
 * One event as one line for people, without its line end:
 * `<time> WARN  press-1 (modbus_tcp 10.0.0.5:502): CONNECTION_REFUSED since 09:00:00 — <message>. Next try 09:00:05. Next step: … key=value`.
 * Control characters of any origin are escaped, so that a device's text can neither forge a line nor steer a terminal.
 */
export function formatLogLine(record: LogRecord, style: TextStyle): string {
  const paint = (colour: Parameters<typeof styleText>[0], words: string): string =>
    style.colour && !style.journald ? styleText(colour, words, { validateStream: false }) : words;
  const head = style.journald
    ? `<${PRIORITY[record.level]}>`
    : `${paint("dim", escapeControls(record.time))} ${paint(COLOUR[record.level], record.level.toUpperCase().padEnd(5))} `;
  const subject = subjectOf(record);
  const state = stateOf(record);
  return [
    head,
    subject && `${paint("bold", escapeControls(subject))}: `,
    state && `${paint(COLOUR[record.level], escapeControls(state))} — `,
    escapeControls(sentencesOf(record)),
    paint("dim", escapeControls(restOf(record))),
  ].join("");
}

function subjectOf(record: LogRecord): string {
  const name = wordOf(record["source"]) ?? wordOf(record["sink"]);
  const place = [wordOf(record["type"]), wordOf(record["endpoint"])].filter((word) => word !== undefined).join(" ");
  if (name === undefined) return place;
  return place === "" ? name : `${name} (${place})`;
}

const isTrouble = ({ level }: LogRecord): boolean => level === "warn" || level === "error";

function stateOf(record: LogRecord): string {
  if (!isTrouble(record)) return "";
  const condition = wordOf(record["condition"]);
  const reason = [reasonWords(record["reason"]), condition && `(${condition})`].filter((part) => part).join(" ");
  const since = wordOf(record["since"]);
  return [reason, since && `since ${clockTime(since, record.time)}`].filter((part) => part).join(" ");
}

/** `TIMEOUT`, or `S7PLUS_ERROR (category AUTHENTICATION)`. */
function reasonWords(reason: unknown): string | undefined {
  if (typeof reason !== "object" || reason === null) return wordOf(reason);
  const { type, ...rest } = reason as Record<string, unknown>;
  const payload = Object.entries(rest)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name} ${wordOf(value) ?? JSON.stringify(value)}`);
  return `${wordOf(type) ?? "?"}${payload.length > 0 ? ` (${payload.join(", ")})` : ""}`;
}

function sentencesOf(record: LogRecord): string {
  const name = wordOf(record["source"]) ?? wordOf(record["sink"]);
  // The line begins with the subject already.
  const msg = name !== undefined && record.msg.startsWith(`${name}: `) ? record.msg.slice(name.length + 2) : record.msg;
  const detail = wordOf(record["detail"]);
  const err = record["err"] === undefined ? undefined : errorWords(record["err"]);
  const nextRetryAt = wordOf(record["nextRetryAt"]);
  const nextStep = wordOf(record["nextStep"]);
  const causes = [detail, err].filter((part) => part !== undefined && part !== "" && !msg.includes(part));
  const first = causes.length === 0 ? msg : `${msg.replace(/[.:]$/, "")}: ${causes.join("; ")}`;
  const more = [nextRetryAt && `Next try ${clockTime(nextRetryAt, record.time)}.`, nextStep && `Next step: ${nextStep}`].filter(
    (part) => part,
  );
  return more.length === 0 ? first : [/[.!?]$/.test(first) ? first : `${first}.`, ...more].join(" ");
}

/** `message (CODE), caused by: message`; a stack, where there is one, follows it. */
function errorWords(err: unknown): string {
  if (typeof err !== "object" || err === null) return wordOf(err) ?? "";
  const { name, message, code, cause, errors, stack } = err as Record<string, unknown>;
  const words = wordOf(message) || wordOf(name) || "error";
  const shown = code !== undefined && !words.includes(String(code)) ? `${words} (${String(code)})` : words;
  const inner = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  const innerWords = inner === undefined || inner === null ? "" : errorWords(inner);
  const chain = innerWords !== "" && !shown.includes(innerWords) ? `${shown}, caused by: ${innerWords}` : shown;
  return typeof stack === "string" ? `${chain} [${stack}]` : chain;
}

function restOf(record: LogRecord): string {
  const placed = isTrouble(record) ? [...PLACED, ...STATE] : PLACED;
  return Object.entries(record)
    .filter(([name, value]) => !placed.includes(name) && value !== undefined)
    .map(([name, value]) => ` ${name}=${quoted(name === "reason" ? reasonWords(value) : value)}`)
    .join("");
}

function quoted(value: unknown): string {
  const word = wordOf(value);
  if (word === undefined) return JSON.stringify(value) ?? "";
  return word === "" || /[\s"=]/.test(word) ? JSON.stringify(word) : word;
}

function wordOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

/** The time of day alone where the date is the event's own; anything that is no ISO time as it is. */
function clockTime(iso: string, eventTime: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/.exec(iso);
  return match?.[1] !== undefined && match[2] !== undefined && eventTime.startsWith(match[1]) ? match[2] : iso;
}
