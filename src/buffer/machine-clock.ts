import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { uptime } from "node:os";
import { clockOf, type LossTime } from "./losses.ts";

/** The clocks that the buffer reads by itself; absent: the machine's. */
export interface MachineClock {
  /** Epoch ms. */
  readonly now?: () => number;
  /** Ms since the machine's start, suspended times included. */
  readonly upMs?: () => number;
  /** Names this start of the machine; default: the kernel's name of it. */
  readonly boot?: string;
}

/** The present time. Nobody vouches for it yet: a later commit says whether this clock is right, and by how much it is corrected. */
export function stampNow({ now = Date.now, upMs = () => uptime() * 1000, boot = bootName() }: MachineClock): LossTime {
  const ms = now();
  return { ms, clock: clockOf(boot, Math.round(ms - upMs())) };
}

export function bootName(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // Not known to be the same as that of any other process.
    return randomUUID();
  }
}
