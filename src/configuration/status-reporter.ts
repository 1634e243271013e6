import type { ApiClient } from "../api/client.ts";
import type { ApiFailure } from "../api/requester.ts";
import { createYielder, sleep } from "../base/timer.ts";
import type { Context } from "../model/context.ts";
import type { SourceReport } from "../model/report.ts";
import type { ReadoutStatusReport } from "../model/resources.ts";

/** In milliseconds. */
export interface ReportTimes {
  /** First wait after a failure; doubled with each further one. */
  readonly retryFirstMs: number;
  readonly retryMaxMs: number;
  /** Between two reports of statuses; between two that differ in last_readout_at alone; between two at all. */
  readonly reportMs: number;
  readonly reportReadoutMs: number;
  readonly reportAllMs: number;
}

/** A data source at a glance. */
export interface StatusGlance {
  readonly uuid: string;
  /** Another one whenever its state is another; undefined: a look at it tells. */
  readonly mark: object | undefined;
  /** Undefined: nothing is known of it. */
  look(): { readonly report: Pick<SourceReport, "status" | "discovers"> } | undefined;
}

export interface StatusReporting {
  readonly client: Pick<ApiClient, "base" | "reportStatuses">;
  /** All data sources as they are now; which of them are sent is decided here. */
  readonly glances: () => Iterable<StatusGlance>;
  /** True: devices may be asked what they have, as the policy says now. */
  readonly mayDiscover: () => boolean;
}

/** Doubling from the first wait to the longest, with jitter of ±10 %. */
export function retryWait(failures: number, { retryFirstMs, retryMaxMs }: ReportTimes): number {
  return Math.min(retryFirstMs * 2 ** Math.min(failures - 1, 30), retryMaxMs) * (0.9 + 0.2 * Math.random());
}

type Report = ReadoutStatusReport[number];

/** The part of a report that the API has. */
interface Reported {
  /** A source whose mark is still this one is not looked at each time: to build the report of each one, and its JSON, costs more than to compare. */
  readonly mark: object | undefined;
  readonly mayDiscover: boolean;
  /** All but the time of the last readout, as JSON. */
  readonly state: string;
  readonly readoutAt: string | null;
}

/** Reports the statuses that differ from what the API has, and from time to time all of them. */
export class StatusReporter {
  readonly #options: StatusReporting;
  readonly #times: ReportTimes;
  readonly #ctx: Context;
  /** By data source. */
  readonly #reported = new Map<string, Reported>();
  #reportedAllAtMs = Number.NEGATIVE_INFINITY;
  #reportedReadoutsAtMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #failing: string | undefined;

  constructor(options: StatusReporting, times: ReportTimes, ctx: Context) {
    this.#options = options;
    this.#times = times;
    this.#ctx = ctx;
  }

  async run(): Promise<void> {
    const { signal } = this.#ctx;
    const { reportMs } = this.#times;
    while (!signal.aborted) {
      await sleep(this.#failures === 0 ? reportMs : Math.max(reportMs, retryWait(this.#failures, this.#times)), signal);
      if (!signal.aborted) await this.#report();
    }
  }

  async #report(): Promise<void> {
    const nowMs = performance.now();
    const isAll = nowMs - this.#reportedAllAtMs >= this.#times.reportAllMs;
    const hasReadouts = isAll || nowMs - this.#reportedReadoutsAtMs >= this.#times.reportReadoutMs;
    const due = await this.#due(isAll, hasReadouts);
    if (due.length === 0) return;
    const reports = due.map(({ report }) => report);
    const result = await this.#options.client.reportStatuses(reports, this.#ctx.signal);
    if (result.type === "not_offered") return;
    if (result.type === "failed") return this.#failed(result);
    this.#failures = 0;
    this.#failing = undefined;
    if (isAll) this.#reportedAllAtMs = nowMs;
    if (hasReadouts) this.#reportedReadoutsAtMs = nowMs;
    for (const { report, reported } of due) this.#reported.set(report.data_source, reported);
  }

  async #due(isAll: boolean, hasReadouts: boolean): Promise<readonly { readonly report: Report; readonly reported: Reported }[]> {
    const yieldToEventLoop = createYielder();
    const mayDiscover = this.#options.mayDiscover();
    const due: { readonly report: Report; readonly reported: Reported }[] = [];
    const present = new Set<string>();
    for (const { uuid, mark, look } of this.#options.glances()) {
      present.add(uuid);
      const last = this.#reported.get(uuid);
      if (!hasReadouts && mark !== undefined && last?.mark === mark && last.mayDiscover === mayDiscover) continue;
      const found = look();
      if (found) {
        const report = reportOf(uuid, found.report, mayDiscover);
        const { last_readout_at: readoutAt, ...state } = report.readout_status;
        const reported = { mark, mayDiscover, state: JSON.stringify([state, report.capabilities]), readoutAt };
        const isOther = last?.state !== reported.state || (hasReadouts && last.readoutAt !== readoutAt);
        if (isAll || isOther) due.push({ report, reported });
        else this.#reported.set(uuid, { ...reported, readoutAt: last.readoutAt });
      }
      await yieldToEventLoop();
    }
    for (const uuid of this.#reported.keys()) if (!present.has(uuid)) this.#reported.delete(uuid);
    return due;
  }

  #failed({ kind, message }: ApiFailure): void {
    this.#failures++;
    // The poll logs a connection that is lost.
    if (this.#failing !== kind && !["unreachable", "timeout", "aborted"].includes(kind))
      this.#ctx.log.warn({ api: this.#options.client.base, failure: kind }, `statuses cannot be reported: ${message}`);
    this.#failing = kind;
  }
}

const reportOf = (uuid: string, { status, discovers }: Pick<SourceReport, "status" | "discovers">, mayDiscover: boolean): Report => ({
  data_source: uuid,
  readout_status: status,
  ...(discovers !== undefined && { capabilities: { variable_discovery: discovers && mayDiscover } }),
});
