import type { ApiClient } from "../api/client.ts";
import type { Desired } from "../api/desired.ts";
import { type LoadedConfiguration, loadLastGood, saveLastGood, storedContentOf } from "../api/last-good.ts";
import { formatDuration } from "../base/duration.ts";
import { sleep } from "../base/timer.ts";
import { heaps } from "../lib/heap.ts";
import { type Clock, upMsOf } from "../model/clock.ts";
import type { Context, Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import { type LeftOut, NOTHING_LEFT_OUT } from "../model/service-status.ts";
import { type Warning, warning } from "../model/warning.ts";
import { type ReportTimes, retryWait, StatusReporter, type StatusReporting } from "./status-reporter.ts";

/** The state of the configuration API, for status and log. */
export interface PollState {
  readonly ok: boolean;
  /** What is wrong, or null. Never holds a key. */
  readonly message: string | null;
  /** Since when it is so, ms since the machine's start. */
  readonly sinceUpMs: number;
}

/** In milliseconds. */
export interface PollTimes extends ReportTimes {
  /** Before a configuration is kept that the disk refused. */
  readonly keepAgainMs: number;
}

export const POLL_TIMES: PollTimes = {
  retryFirstMs: 1000,
  retryMaxMs: 60_000,
  keepAgainMs: 60_000,
  reportMs: 1000,
  reportReadoutMs: 10_000,
  reportAllMs: 60_000,
};

/** An interval of nothing would poll without end. */
const MIN_POLL_MS = 50;
/** setTimeout above 2^31 ms fires at once. */
const MAX_POLL_MS = 86_400_000;

export interface PollingOptions extends Omit<StatusReporting, "client"> {
  readonly client: StatusReporting["client"] & Pick<ApiClient, "pull">;
  readonly collector: string;
  /** The collector's own: what it has kept itself is not validated again. */
  readonly version: string;
  readonly clock: Clock;
  readonly lastGoodFile: string;
  /** What is at work already; absent: the last good one from disk is, as soon as it is read. */
  readonly current?: Desired | undefined;
  /** 50 ms to a day; bounded to that. */
  readonly pollIntervalMs: number;
  /** The whole configuration, each time it may differ. Must not throw; what it throws is logged. */
  readonly onConfiguration: (desired: Desired, origin: "api" | "last_good") => void;
  /** After each change. */
  readonly onState: (state: PollState) => void;
  /** What of the configuration in force cannot be used or was replaced, for status: after each change of it. */
  readonly onWarnings: (warnings: readonly Warning[], leftOut: LeftOut) => void;
  /** Those that differ from POLL_TIMES. */
  readonly times?: Partial<PollTimes> | undefined;
}

/**
 * Keeps the configuration current until the signal aborts: the last good one from disk before any network, unless one is at work, then a pull
 * each `pollIntervalMs` ± 10 %, after a failure with a growing wait; and reports statuses back. One log line per change of state. Settles
 * once nothing is under way; never rejects.
 */
export async function runPolling(options: PollingOptions, ctx: Context): Promise<void> {
  const times: PollTimes = { ...POLL_TIMES, ...options.times };
  const guarded = async (what: string, work: Promise<void>): Promise<void> => {
    try {
      await work;
    } catch (error) {
      ctx.log.error({ err: error }, `${what} failed: ${messageOf(error)}`);
    }
  };
  await Promise.all([
    guarded("polling the configuration API", pollConfiguration(options, times, ctx)),
    guarded("reporting to the configuration API", new StatusReporter(options, times, ctx).run()),
  ]);
}

async function pollConfiguration(options: PollingOptions, times: PollTimes, ctx: Context): Promise<void> {
  const { client, collector, lastGoodFile, pollIntervalMs } = options;
  const { signal, log } = ctx;
  const apply = (desired: Desired, origin: "api" | "last_good"): void => {
    try {
      options.onConfiguration(desired, origin);
    } catch (error) {
      log.error({ err: error, origin }, "applying a configuration failed");
    }
  };

  let warned: readonly Warning[] = [];
  const warn = (warnings: readonly Warning[], fields: object, leftOut = NOTHING_LEFT_OUT): void => {
    const known = new Set(warned.map(({ text }) => text));
    for (const { text } of warnings) if (!known.has(text)) log.warn(fields, text);
    if (warnings.length === warned.length && warnings.every(({ text }) => known.has(text))) return;
    warned = warnings;
    try {
      options.onWarnings(warnings, leftOut);
    } catch (error) {
      log.error({ err: error }, "taking over the warnings of the configuration failed");
    }
  };

  // Another API, or the same after a change of the settings: nothing that it said before counts.
  let current: Desired | null = options.current ? { ...options.current, revision: null } : null;
  const loaded = await heaps.whileFilling(() => loadLastGood(lastGoodFile, collector, options.version));
  if (current) log.info({ api: client.base }, "running the last good configuration until the API answers");
  else if (loaded.type === "loaded") {
    current = loaded.configuration;
    log.info({ file: lastGoodFile, fetched_at: current.fetchedAt }, "running on the last good configuration until the API answers");
    warn(loaded.warnings, { file: lastGoodFile });
    apply(current, "last_good");
  } else if (loaded.type === "damaged") warn([warning("kept_configuration_damaged", loaded.message)], { file: lastGoodFile });
  else log.info({ file: lastGoodFile }, loaded.message);

  const state = createStateKeeper(options, ctx);
  const keeper = new Keeper(options, times, loaded, log);
  /** The last answer of the API. */
  let told: Desired | undefined;
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
        warn(result.warnings, { api: client.base }, result.leftOut);
        told = result.configuration;
        current = told;
        apply(current, "api");
      }
      if (told) await keeper.keep(told);
    }
    await sleep(waitMs, signal);
  }
}

/** True: the file may hold a user or password of an address, as a build of before kept it: it is written again, and not set aside. */
const holdsUsers = ({ sources, sinks }: Desired): boolean =>
  sources.some((source) => source.user_left_out_of) || sinks.some((sink) => sink.user_left_out_of);

/** The configuration that the file holds, and its digest once it was compared with another one. */
interface Kept {
  readonly configuration: Desired;
  content?: string;
}

/** A configuration with what `kept` is compared by. An unchanged list is the same array, and most pulls change none: they need no digest. */
async function contentLike(kept: Kept, configuration: Desired): Promise<Kept> {
  const { sources, sinks, variables } = kept.configuration;
  const areSame = sources === configuration.sources && sinks === configuration.sinks && variables === configuration.variables;
  if (areSame) return { ...kept, configuration };
  kept.content ??= await storedContentOf(kept.configuration);
  return { configuration, content: await storedContentOf(configuration) };
}

/** Keeps on disk what the API tells. A disk that is full or read-only costs the restart its configuration, not the run. */
class Keeper {
  readonly #options: PollingOptions;
  readonly #times: PollTimes;
  readonly #log: Log;
  #kept: Kept | undefined;
  /** True: the file at hand may take the place of the one before it. */
  #isWorthKeeping: boolean;
  /** When the disk refused it last, monotonic ms; undefined: it took it. */
  #refusedMs: number | undefined;

  constructor(options: PollingOptions, times: PollTimes, loaded: LoadedConfiguration, log: Log) {
    this.#options = options;
    this.#times = times;
    this.#log = log;
    const whole = loaded.type === "loaded" && loaded.warnings.length === 0 && !holdsUsers(loaded.configuration) ? loaded : undefined;
    // Another version has written it: this one writes it again, so that the next start need not validate it.
    this.#kept = whole?.isOwn ? { configuration: whole.configuration } : undefined;
    this.#isWorthKeeping = whole !== undefined;
  }

  async keep(configuration: Desired): Promise<void> {
    const kept = this.#kept;
    if (kept?.configuration === configuration) return;
    if (this.#refusedMs !== undefined && performance.now() - this.#refusedMs < this.#times.keepAgainMs) return;
    const now: Kept = kept ? await contentLike(kept, configuration) : { configuration };
    const isSame = kept !== undefined && kept.content === now.content;
    const isKept = isSame || (await this.#save(configuration));
    this.#isWorthKeeping ||= isKept;
    this.#kept = isKept ? now : undefined;
  }

  /** True: the file holds it now. */
  async #save(desired: Desired): Promise<boolean> {
    const { lastGoodFile: file, version } = this.#options;
    const isRefused = this.#refusedMs !== undefined;
    try {
      await saveLastGood(file, desired, { keepsBefore: this.#isWorthKeeping, version });
    } catch (error) {
      const words = "the configuration cannot be kept on disk: after a restart the API must answer first";
      if (!isRefused) this.#log.error({ file, err: error }, words);
      this.#refusedMs = performance.now();
      return false;
    }
    if (isRefused) this.#log.info({ file }, "the configuration is kept on disk again");
    this.#refusedMs = undefined;
    return true;
  }
}

function createStateKeeper({ client: { base }, onState, clock }: PollingOptions, { log }: Context) {
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
      if (state?.ok) return;
      const nowUpMs = upMsOf(clock);
      log.info(
        { api: base, ...(state && { after: formatDuration(Math.round(nowUpMs - state.sinceUpMs)) }) },
        state ? "the configuration API answers again" : "the configuration API answers",
      );
      kind = undefined;
      set({ ok: true, message: null, sinceUpMs: nowUpMs });
    },
    failed(nextKind: string, message: string): void {
      if (state?.ok === false && kind === nextKind && state.message === message) return;
      const changed = state?.ok !== false || kind !== nextKind;
      if (changed) log.warn({ api: base, failure: nextKind }, message);
      kind = nextKind;
      const sinceUpMs = state?.ok === false ? state.sinceUpMs : upMsOf(clock);
      set({ ok: false, message, sinceUpMs });
    },
  };
}
