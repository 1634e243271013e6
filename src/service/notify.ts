import { writeSync } from "node:fs";
import type { Log } from "../model/context.ts";
import { socketOf } from "../os/socket-fd.ts";

/** The service manager, which this service notifies of its state (sd_notify(3)). Nothing here throws or waits. */
export interface Notifier {
  /** Variable assignments of sd_notify(3), such as `READY=1`; control characters in them become spaces. */
  send(...assignments: readonly string[]): void;
}

/** Longest assignment that is sent, in characters. */
const MAX_ASSIGNMENT = 300;

/**
 * A notifier of the service manager, or undefined where none asked for notifications (no NOTIFY_SOCKET). It writes to the connected datagram
 * socket NOTIFY_FD, which bin/notify-socket.pl opens before it becomes this process: Node has no such sockets. Datagrams come from this very
 * process, so that the unit can trust it alone (NotifyAccess=main).
 */
export function createNotifier(env: Readonly<Record<string, string | undefined>>, log: Log): Notifier | undefined {
  const { NOTIFY_SOCKET: socket, NOTIFY_FD: given } = env;
  if (!socket) return undefined;
  const fd = socketOf(given);
  if (fd === undefined) {
    log.error(
      { socket, fd: given },
      "the service manager cannot be notified that the collector is ready: start it with /usr/bin/collector, which needs perl",
    );
    return undefined;
  }
  let failing = false;
  return {
    send(...assignments) {
      const text = assignments.map((words) => words.replace(/[\p{Cc}\u2028\u2029]+/gu, " ").slice(0, MAX_ASSIGNMENT)).join("\n");
      try {
        writeSync(fd, text);
        failing = false;
      } catch (error) {
        // Once for each outage: the next notification tries again anyway.
        if (!failing) log.warn({ err: error, socket }, "the service manager does not take notifications");
        failing = true;
      }
    },
  };
}

export interface NotifyingOptions {
  readonly notifier: Notifier;
  /** Of this process: where a service manager names the socket of its notifications. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  /** One line for people: the text after `Status:` in `systemctl status`. */
  readonly summary: () => string;
  /** True: the service does its work; the watchdog is fed only while it does. */
  readonly progressing: () => boolean;
  readonly signal: AbortSignal;
}

const STATUS_EVERY_MS = 2000;
/** Feeds in each period of the watchdog: some may come late. */
const FEEDS = 4;

/**
 * Says ready at once; then keeps the summary up to date, feeds the watchdog while there is progress, and says when the service stops.
 * Its timer runs in the caller's event loop: one that is blocked feeds nothing.
 */
export function startNotifying({ notifier, env, pid, summary, progressing, signal }: NotifyingOptions): void {
  const periodMs = watchdogPeriodMs(env, pid);
  const everyMs = Math.min(STATUS_EVERY_MS, (periodMs ?? Number.POSITIVE_INFINITY) / FEEDS);
  let sent = summary();
  notifier.send("READY=1", `STATUS=${sent}`, ...(periodMs === undefined ? [] : ["WATCHDOG=1"]));
  const timer = setInterval(() => {
    const now = summary();
    const assignments = [...(now === sent ? [] : [`STATUS=${now}`]), ...(periodMs !== undefined && progressing() ? ["WATCHDOG=1"] : [])];
    sent = now;
    if (assignments.length > 0) notifier.send(...assignments);
  }, everyMs);
  timer.unref();
  const stopping = (): void => {
    clearInterval(timer);
    // From here on the service manager's deadline for stopping counts, not the watchdog.
    notifier.send("STOPPING=1", "STATUS=stopping: writing what was read to disk");
  };
  if (signal.aborted) stopping();
  else signal.addEventListener("abort", stopping, { once: true });
}

/** The watchdog's period that the service manager set for this process (sd_watchdog_enabled(3)), in ms; undefined: it watches another or none. */
export function watchdogPeriodMs(env: Readonly<Record<string, string | undefined>>, pid: number): number | undefined {
  const { WATCHDOG_USEC: usec, WATCHDOG_PID: watched } = env;
  if (watched !== undefined && watched !== String(pid)) return undefined;
  const ms = /^\d{1,15}$/.test(usec ?? "") ? Number(usec) / 1000 : 0;
  return ms > 0 ? ms : undefined;
}
