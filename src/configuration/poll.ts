import type { ApiClient } from "../api/client.ts";
import type { Desired } from "../api/desired.ts";
import type { Context } from "../model/context.ts";
import { formatDuration } from "../model/duration.ts";
import { messageOf } from "../model/failure.ts";
import type { ReadoutStatusReport } from "../model/resources.ts";
import { createBreather } from "../model/timer.ts";
import { loadLastGood, saveLastGood, storedContentOf } from "./last-good.ts";

/** How the configuration API stands, for status and log. Times are ISO 8601 UTC. */
export interface PollState {
  readonly ok: boolean;
  /** What is wrong, or null. Never holds a key. */
  readonly message: string | null;
  /** Since when it is so. */
  readonly since: string;
  /** When the API last answered as it should; null: not yet. */
  readonly lastOkAt: string | null;
}

/** In milliseconds. */
export interface PollTimes {
  /** First wait after a failure; doubled with each further one. */
  readonly retryFirstMs: number;
  readonly retryMaxMs: number;
  /** Between two reports of statuses; between two that differ in last_readout_at alone; between two at all. */
  readonly reportMs: number;
  readonly reportReadoutMs: number;
  readonly reportAllMs: number;
}

export const POLL_TIMES: PollTimes = {
  retryFirstMs: 1000,
  retryMaxMs: 60_000,
  reportMs: 1000,
  reportReadoutMs: 10_000,
  reportAllMs: 60_000,
};

/** An interval of nothing would poll without end. */
const MIN_POLL_MS = 50;
/** setTimeout above 2^31 ms fires at once. */
const MAX_POLL_MS = 86_400_000;

export interface PollingOptions {
  readonly client: Pick<ApiClient, "base" | "pull" | "reportStatuses">;
  readonly collector: string;
  readonly lastGoodFile: string;
  /** 50 ms to a day; bounded to that. */
  readonly pollIntervalMs: number;
  /** The whole configuration, each time it may differ. Must not throw; what it throws is logged. */
  readonly onConfiguration: (desired: Desired, origin: "api" | "last_good") => void;
  /** After each change. */
  readonly onState: (state: PollState) => void;
  /** What of the configuration in force cannot be used or was replaced, for status: after each change of it. */
  readonly onWarnings: (warnings: readonly string[]) => void;
  /** All data sources as they stand now; which of them are sent is decided here. */
  readonly takeReports: () => ReadoutStatusReport;
  /** Those that differ from POLL_TIMES. */
  readonly times?: Partial<PollTimes> | undefined;
}

export interface Polling {
  /** Polls at once, also out of a wait after a failure. */
  kick(): void;
  /** Settles once the signal has aborted and nothing is under way; never rejects. */
  readonly done: Promise<void>;
}

/** Polls until the signal aborts. See startPolling. */
export function runPolling(options: PollingOptions, ctx: Context): Promise<void> {
  return startPolling(options, ctx).done;
}

/**
 * Keeps the configuration current: the last good one from disk before any network, then a pull each `pollIntervalMs` ± 10 %, after a
 * failure with a growing wait; and reports statuses back. One log line per change of state.
 */
export function startPolling(options: PollingOptions, ctx: Context): Polling {
  const pause = createPause();
  const times: PollTimes = { ...POLL_TIMES, ...options.times };
  const guarded = async (what: string, work: Promise<void>): Promise<void> => {
    try {
      await work;
    } catch (error) {
      ctx.log.error({ err: error }, `${what} failed: ${messageOf(error)}`);
    }
  };
  const done = Promise.all([
    guarded("polling the configuration API", pollConfiguration(options, times, pause, ctx)),
    guarded("reporting to the configuration API", reportStatuses(options, times, ctx)),
  ]).then(() => {});
  return { kick: () => pause.kick(), done };
}

async function pollConfiguration(options: PollingOptions, times: PollTimes, pause: Pause, ctx: Context): Promise<void> {
  const { client, collector, lastGoodFile, pollIntervalMs } = options;
  const { signal, log } = ctx;
  const apply = (desired: Desired, origin: "api" | "last_good"): void => {
    try {
      options.onConfiguration(desired, origin);
    } catch (error) {
      log.error({ err: error, origin }, "applying a configuration failed");
    }
  };

  let warned: readonly string[] = [];
  const warn = (warnings: readonly string[], fields: object): void => {
    const known = new Set(warned);
    for (const warning of warnings) if (!known.has(warning)) log.warn(fields, warning);
    if (warnings.length === warned.length && warnings.every((warning) => known.has(warning))) return;
    warned = warnings;
    try {
      options.onWarnings(warnings);
    } catch (error) {
      log.error({ err: error }, "taking over the warnings of the configuration failed");
    }
  };

  let current: Desired | null = null;
  const loaded = await loadLastGood(lastGoodFile, collector);
  if (loaded.type === "loaded") {
    current = loaded.configuration;
    log.info({ file: lastGoodFile, fetched_at: current.fetchedAt }, "running on the last good configuration until the API answers");
    warn(loaded.warnings, { file: lastGoodFile });
    apply(current, "last_good");
  } else if (loaded.type === "damaged") warn([loaded.message], { file: lastGoodFile });
  else log.info({ file: lastGoodFile }, loaded.message);

  const state = createStateKeeper(client.base, options.onState, ctx);
  const isWhole = loaded.type === "loaded" && loaded.warnings.length === 0;
  let saved = isWhole ? await storedContentOf(loaded.configuration) : undefined;
  /** Whether the file at hand may take the place of the one before it. */
  let isWorthKeeping = isWhole;
  let failures = 0;
  while (!signal.aborted) {
    const result = await client.pull(current, signal);
    if (signal.aborted) break;
    let waitMs = Math.min(Math.max(pollIntervalMs, MIN_POLL_MS), MAX_POLL_MS) * (0.9 + 0.2 * Math.random());
    if (result.type === "failed") {
      failures++;
      state.failed(result.kind, result.message);
      waitMs = Math.max(result.retryAfterMs ?? 0, retryWait(failures, times));
    } else {
      failures = 0;
      state.ok();
      if (result.type === "configuration") {
        warn(result.warnings, { api: client.base });
        const isSameContent = saved !== undefined && haveSameLists(current, result.configuration);
        current = result.configuration;
        apply(current, "api");
        const content = isSameContent ? saved : await storedContentOf(current);
        if (content !== saved) {
          const isSaved = await save(lastGoodFile, current, isWorthKeeping, ctx);
          isWorthKeeping ||= isSaved;
          saved = isSaved ? content : undefined;
        }
      }
    }
    await pause.wait(waitMs, signal);
  }
}

/** An unchanged list is the same array; false says nothing. */
const haveSameLists = (before: Desired | null, now: Desired): boolean =>
  before?.sources === now.sources && before.sinks === now.sinks && before.variables === now.variables;

/** Whether the file holds it now. A disk that is full or read-only costs the restart its configuration, not the run. */
async function save(file: string, desired: Desired, keepsBefore: boolean, { log }: Context): Promise<boolean> {
  try {
    await saveLastGood(file, desired, keepsBefore);
    return true;
  } catch (error) {
    log.error({ file, err: error }, "the configuration cannot be kept on disk: after a restart the API must answer first");
    return false;
  }
}

/** Doubling from the first wait to the longest, with jitter of ±10 %. */
function retryWait(failures: number, { retryFirstMs, retryMaxMs }: PollTimes): number {
  return Math.min(retryFirstMs * 2 ** Math.min(failures - 1, 30), retryMaxMs) * (0.9 + 0.2 * Math.random());
}

function createStateKeeper(base: string, onState: PollingOptions["onState"], { log }: Context) {
  let state: PollState | undefined;
  let kind: string | undefined;
  const set = (next: PollState): void => {
    state = next;
    try {
      onState(next);
    } catch (error) {
      log.error({ err: error }, "taking over the API's state failed");
    }
  };
  return {
    ok(): void {
      const now = new Date().toISOString();
      if (state?.ok) {
        state = { ...state, lastOkAt: now };
        return;
      }
      log.info(
        { api: base, ...(state && { after: formatDuration(Date.parse(now) - Date.parse(state.since)) }) },
        state ? "the configuration API answers again" : "the configuration API answers",
      );
      kind = undefined;
      set({ ok: true, message: null, since: now, lastOkAt: now });
    },
    failed(nextKind: string, message: string): void {
      if (state?.ok === false && kind === nextKind && state.message === message) return;
      const changed = state?.ok !== false || kind !== nextKind;
      if (changed) log.warn({ api: base, failure: nextKind }, message);
      kind = nextKind;
      const since = state?.ok === false ? state.since : new Date().toISOString();
      set({ ok: false, message, since, lastOkAt: state?.lastOkAt ?? null });
    },
  };
}

async function reportStatuses({ client, takeReports }: PollingOptions, times: PollTimes, ctx: Context): Promise<void> {
  const { signal, log } = ctx;
  const pause = createPause();
  /** What the API was told last, by data source. */
  let told = new Map<string, { readonly state: string; readonly whole: string }>();
  let toldAllAt = Number.NEGATIVE_INFINITY;
  let toldReadoutsAt = Number.NEGATIVE_INFINITY;
  let failures = 0;
  let failing: string | undefined;
  while (!signal.aborted) {
    await pause.wait(failures === 0 ? times.reportMs : Math.max(times.reportMs, retryWait(failures, times)), signal);
    if (signal.aborted) return;
    const now = performance.now();
    const all = now - toldAllAt >= times.reportAllMs;
    const readouts = all || now - toldReadoutsAt >= times.reportReadoutMs;
    const breathe = createBreather();
    const present = new Map<string, { readonly report: ReadoutStatusReport[number]; readonly state: string; readonly whole: string }>();
    for (const report of takeReports()) {
      const { last_readout_at: _, ...state } = report.readout_status;
      const now = { report, state: JSON.stringify([state, report.capabilities]), whole: JSON.stringify(report) };
      present.set(report.data_source, now);
      await breathe();
    }
    const due = [...present.values()].filter(({ report, state, whole }) => {
      const last = told.get(report.data_source);
      return all || last?.state !== state || (readouts && last.whole !== whole);
    });
    if (due.length === 0) continue;
    const result = await client.reportStatuses(
      due.map(({ report }) => report),
      signal,
    );
    if (result.type === "not_offered") continue;
    if (result.type === "failed") {
      failures++;
      // A connection that is lost is the poll's to say.
      if (failing !== result.kind && !["unreachable", "timeout", "aborted"].includes(result.kind))
        log.warn({ api: client.base, failure: result.kind }, `statuses cannot be reported: ${result.message}`);
      failing = result.kind;
      continue;
    }
    failures = 0;
    failing = undefined;
    if (all) toldAllAt = now;
    if (readouts) toldReadoutsAt = now;
    told = new Map([...told, ...due.map(({ report, state, whole }) => [report.data_source, { state, whole }] as const)]);
    for (const uuid of told.keys()) if (!present.has(uuid)) told.delete(uuid);
  }
}

interface Pause {
  /** Waits, until kicked or aborted; a kick while nothing waits ends the next wait at once. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  kick(): void;
}

function createPause(): Pause {
  let kicked = false;
  let end: (() => void) | undefined;
  return {
    wait: (ms, signal) =>
      new Promise((resolve) => {
        const finish = (): void => {
          clearTimeout(timer);
          signal.removeEventListener("abort", finish);
          end = undefined;
          kicked = false;
          resolve();
        };
        const timer = setTimeout(finish, ms);
        signal.addEventListener("abort", finish, { once: true });
        end = finish;
        if (kicked || signal.aborted) finish();
      }),
    kick: () => {
      kicked = true;
      end?.();
    },
  };
}
