import { createRequire } from "node:module";
import type { Log } from "../model/context.ts";

/** The service manager, which this service notifies of its state (sd_notify(3)). Nothing here throws or waits. */
export interface Notifier {
  /** Variable assignments of sd_notify(3), such as `READY=1`; control characters in them become spaces. */
  send(...assignments: readonly string[]): void;
}

/** Longest assignment that is sent, in characters. */
const MAX_ASSIGNMENT = 300;
/** Linux, the same on x64 and arm64. */
const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const MSG_DONTWAIT_NOSIGNAL = 0x40 | 0x4000;
/** sun_path of unix(7). */
const MAX_PATH_BYTES = 108;

/** Sends one datagram; gives 0, or the errno with which it failed. */
type SendDatagram = (payload: Buffer) => number;

/**
 * A notifier of the service manager, or undefined where none asked for notifications (no NOTIFY_SOCKET). Datagrams come from this very
 * process, so that the unit can trust it alone (NotifyAccess=main): systemd-notify would be another process, and starting one stops the main
 * thread of a process of this size for some 10 ms each time.
 */
export function createNotifier(env: Readonly<Record<string, string | undefined>>, log: Log): Notifier | undefined {
  const target = env["NOTIFY_SOCKET"];
  if (!target) return undefined;
  let sendDatagram: SendDatagram;
  try {
    sendDatagram = openDatagramSocket(target);
  } catch (error) {
    log.error({ err: error, socket: target }, "the service manager cannot be notified that the collector is ready");
    return undefined;
  }
  let failing = false;
  return {
    send(...assignments) {
      const text = assignments.map((words) => words.replace(/[\p{Cc}\u2028\u2029]+/gu, " ").slice(0, MAX_ASSIGNMENT)).join("\n");
      const errno = sendDatagram(Buffer.from(text));
      // Once for each outage: the next notification tries again anyway.
      if (errno !== 0 && !failing) log.warn({ errno, socket: target }, "the service manager does not take notifications");
      failing = errno !== 0;
    },
  };
}

/** Throws an Error where there can be no such socket. `target` is a path, or an abstract name that begins with `@` (sd_notify(3)). */
function openDatagramSocket(target: string): SendDatagram {
  // Loaded here and not above: without a service manager nothing native is needed.
  const koffi = createRequire(import.meta.url)("koffi") as typeof import("koffi");
  const libc = koffi.load("libc.so.6");
  const socket = libc.func("int socket(int domain, int type, int protocol)");
  const sendto = libc.func(
    "intptr_t sendto(int fd, const void *data, size_t length, int flags, const void *address, uint32_t addressLength)",
  );
  const address = socketAddress(target);
  const fd: unknown = socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
  if (typeof fd !== "number" || fd < 0) throw new Error(`no AF_UNIX datagram socket can be had (errno ${koffi.errno()})`);
  return (payload) => {
    const sent: unknown = sendto(fd, payload, payload.length, MSG_DONTWAIT_NOSIGNAL, address, address.length);
    return Number(sent) === payload.length ? 0 : koffi.errno();
  };
}

/** sockaddr_un of unix(7): the family, then a path with its end, or a zero and an abstract name. Throws Error. */
export function socketAddress(target: string): Buffer {
  if (!/^[/@]/.test(target)) throw new Error(`NOTIFY_SOCKET=${target} is neither a path nor an abstract name (@…)`);
  const path = Buffer.from(target.startsWith("@") ? `\0${target.slice(1)}` : `${target}\0`);
  if (path.length > MAX_PATH_BYTES) throw new Error(`NOTIFY_SOCKET=${target} is longer than a socket's name may be`);
  const family = Buffer.alloc(2);
  family.writeUInt16LE(AF_UNIX);
  return Buffer.concat([family, path]);
}

export interface NotifyingOptions {
  readonly notifier: Notifier;
  /** Of this process: where a service manager names the socket of its notifications. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  /** One line for people: the text after `Status:` in `systemctl status`. */
  readonly summary: () => string;
  /** Whether the service does its work; the watchdog is fed only while it does. */
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
