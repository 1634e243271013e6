import { writeSync } from "node:fs";
import { escapeControls } from "../base/plain-text.ts";
import { type LogRecord, PRIORITY } from "../lib/log-text.ts";
import { socketOf } from "./socket-fd.ts";

/** The journal of systemd, which takes fields beside a message (systemd.io/JOURNAL_NATIVE_PROTOCOL). Nothing here throws or waits. */
export interface Journal {
  /** False: it does not take this one now, or it is too long for a datagram. */
  send(record: LogRecord, message: string): boolean;
}

/** What of a record has a field of its own: `journalctl COLLECTOR_REASON=TIMEOUT`. */
const FIELDS = ["source", "sink", "type", "endpoint", "reason", "condition"] as const;

/** Of the socket JOURNAL_FD, which bin/notify-socket.pl opens before it becomes this process; undefined: there is none. */
export function openJournal({ JOURNAL_FD: given }: Readonly<Record<string, string | undefined>>): Journal | undefined {
  const fd = socketOf(given);
  if (fd === undefined) return undefined;
  return {
    send(record, message) {
      try {
        writeSync(fd, journalEntry(record, message));
        return true;
      } catch {
        return false;
      }
    },
  };
}

/** The datagram. A line feed would end a field: none is left in a value. Pure. */
export function journalEntry(record: LogRecord, message: string): string {
  const fields = FIELDS.flatMap((name) => {
    const value = wordOf(record[name]);
    return value === undefined ? [] : [`COLLECTOR_${name.toUpperCase()}=${escapeControls(value)}`];
  });
  const lines = [`MESSAGE=${escapeControls(message)}`, `PRIORITY=${PRIORITY[record.level]}`, "SYSLOG_IDENTIFIER=collector", ...fields];
  return `${lines.join("\n")}\n`;
}

/** Of a reason with a payload, its type. */
function wordOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string" ? value.type : undefined;
}
