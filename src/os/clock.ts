import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { performance } from "node:perf_hooks";
import type { Clock } from "../model/clock.ts";

/** A wall clock that is off by more than this from the carried one was set: take it over. */
const STEP_MS = 50;
const CHECK_MS = 1000;
const SYNC_CHECK_MS = 60_000;
const SYNC_TIMEOUT_MS = 2000;

/**
 * Epoch time carried by the monotonic clock between checks, so that a slow correction never lets time stamps go back;
 * a step of the wall clock is taken over within a second. Synchronised means that systemd says so; unknown counts as no.
 */
export function startClock(signal: AbortSignal): Clock {
  let offset = Date.now() - performance.now();
  let synced = false;
  const check = setInterval(() => {
    const now = Date.now() - performance.now();
    if (Math.abs(now - offset) > STEP_MS) offset = now;
  }, CHECK_MS);
  const ask = () => {
    if (existsSync("/run/systemd/timesync/synchronized")) {
      synced = true;
      return;
    }
    execFile("timedatectl", ["show", "-p", "NTPSynchronized", "--value"], { timeout: SYNC_TIMEOUT_MS }, (error, stdout) => {
      synced = !error && stdout.trim() === "yes";
    });
  };
  ask();
  const syncCheck = setInterval(ask, SYNC_CHECK_MS);
  check.unref();
  syncCheck.unref();
  signal.addEventListener(
    "abort",
    () => {
      clearInterval(check);
      clearInterval(syncCheck);
    },
    { once: true },
  );
  return { monotonicMs: () => performance.timeOrigin + performance.now(), epochMs: () => performance.now() + offset, synced: () => synced };
}
