import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { uptime } from "node:os";
import { performance } from "node:perf_hooks";
import type { Clock, ClockJump } from "../model/clock.ts";

/** A wall clock that is off by more than this from the carried one was set: take it over. */
const STEP_MS = 50;
const CHECK_MS = 1000;
/** A step of less is a correction that nobody has to know of. */
const JUMP_MS = 500;
/** The machine was suspended where more than this came to its uptime and not to the monotonic clock. */
const SUSPENDED_MS = 1000;
const SYNC_CHECK_MS = 60_000;
const SYNC_TIMEOUT_MS = 2000;
/** Who sets the clock may say only a little later that it is synchronised. */
const ASK_AFTER_STEP_MS = 5000;

/** What a clock is made of; all in ms. */
export interface ClockSources {
  /** The wall clock, since the epoch. */
  readonly wallMs: () => number;
  /** Never steps. */
  readonly monotonicMs: () => number;
  /** Since the start of the machine, times in which it was suspended included. */
  readonly uptimeMs: () => number;
  /** Answers later; what it cannot tell counts as no. */
  readonly askSynced: (answer: (isSynced: boolean) => void) => void;
}

const SYSTEM: ClockSources = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.timeOrigin + performance.now(),
  uptimeMs: () => uptime() * 1000,
  askSynced: askSystemd,
};

/** Clock of a thread that shows times and stamps no readouts: whether it is synchronised is not asked. */
export const startThreadClock = (signal: AbortSignal): Clock => startClock(signal, { ...SYSTEM, askSynced: (answer) => answer(false) });

function askSystemd(answer: (isSynced: boolean) => void): void {
  if (existsSync("/run/systemd/timesync/synchronized")) answer(true);
  else
    execFile("timedatectl", ["show", "-p", "NTPSynchronized", "--value"], { timeout: SYNC_TIMEOUT_MS }, (error, stdout) =>
      answer(!error && stdout.trim() === "yes"),
    );
}

/**
 * Epoch time carried by the monotonic clock between checks, so that a slow correction never lets time stamps go back;
 * a step of the wall clock is taken over within a second, and `onJump` hears of one of half a second and more. Synchronised means that systemd says so; unknown counts as no.
 */
export function startClock(signal: AbortSignal, sources: ClockSources = SYSTEM, onJump: (jump: ClockJump) => void = () => {}): Clock {
  const { wallMs, monotonicMs, uptimeMs, askSynced } = sources;
  let offsetMs = wallMs() - monotonicMs();
  let bootedAtMs = monotonicMs() - uptimeMs();
  let synced = false;
  let lastJump: ClockJump | undefined;
  const ask = (): void =>
    askSynced((isSynced) => {
      synced = isSynced;
    });
  let askedAgain: NodeJS.Timeout | undefined;
  const check = setInterval(() => {
    const nowMs = monotonicMs();
    const bootedMs = nowMs - uptimeMs();
    const seenMs = wallMs() - nowMs;
    // This thread stood still between one clock and the next: their difference is none of theirs.
    if (monotonicMs() - nowMs > STEP_MS) return;
    const suspendedMs = Math.abs(bootedMs - bootedAtMs) > SUSPENDED_MS ? bootedAtMs - bootedMs : 0;
    bootedAtMs -= suspendedMs;
    if (Math.abs(seenMs - offsetMs) <= STEP_MS) return;
    const byMs = seenMs - offsetMs - suspendedMs;
    offsetMs = seenMs;
    if (Math.abs(byMs) >= JUMP_MS) {
      lastJump = { atMs: wallMs(), byMs };
      onJump(lastJump);
    }
    ask();
    clearTimeout(askedAgain);
    askedAgain = setTimeout(ask, ASK_AFTER_STEP_MS);
    askedAgain.unref();
  }, CHECK_MS);
  ask();
  const syncCheck = setInterval(ask, SYNC_CHECK_MS);
  check.unref();
  syncCheck.unref();
  signal.addEventListener(
    "abort",
    () => {
      clearInterval(check);
      clearInterval(syncCheck);
      clearTimeout(askedAgain);
    },
    { once: true },
  );
  return {
    monotonicMs,
    epochMs: () => monotonicMs() + offsetMs,
    synced: () => synced,
    bootedAtMs: () => bootedAtMs,
    lastJump: () => lastJump,
  };
}

/** True: systemd says that the clock is synchronised; unknown counts as no. Answers within two seconds. */
export const askSynchronised = (): Promise<boolean> => new Promise(askSystemd);
