import type { ApiClient } from "../api/client.ts";
import { heaps } from "../lib/heap.ts";
import type { Context } from "../model/context.ts";
import { type LeftOut, NOTHING_LEFT_OUT } from "../model/service-status.ts";
import { type ReportedWarning, type Warning, WarningTimes } from "../model/warning.ts";
import { type PollingOptions, type PollState, runPolling } from "./poll.ts";

export interface ApiLinkOptions extends Omit<PollingOptions, "client" | "onState" | "onWarnings" | "times"> {
  readonly client: ApiClient;
}

/** One configuration API as the collector asks it: its polling, until it is ended or the signal aborts. */
export class ApiLink {
  readonly #client: ApiClient;
  readonly #end = new AbortController();
  readonly #polling: Promise<void>;
  readonly #times = new WarningTimes();
  #state: PollState | undefined;
  #warnings: readonly Warning[] = [];
  #leftOut: LeftOut = NOTHING_LEFT_OUT;

  constructor({ client, ...options }: ApiLinkOptions, { signal, log }: Context) {
    this.#client = client;
    this.#polling = runPolling(
      {
        ...options,
        client: {
          base: client.base,
          pull: (previous, stop) => heaps.whileFilling(() => client.pull(previous, stop)),
          reportStatuses: (reports, stop) => client.reportStatuses(reports, stop),
        },
        onState: (state) => {
          this.#state = state;
          this.#date();
        },
        onWarnings: (warnings, leftOut) => {
          this.#warnings = warnings;
          this.#leftOut = leftOut;
          this.#date();
        },
      },
      { signal: AbortSignal.any([signal, this.#end.signal]), log },
    );
  }

  /** Of the last pull; undefined: none has ended yet. */
  get state(): PollState | undefined {
    return this.#state;
  }

  /** What of the configuration in force cannot be used or was replaced, and what the API does not offer. */
  get warnings(): readonly ReportedWarning[] {
    return this.#date();
  }

  /** With each pull, so that each has the time at which it came and not that of the first look. */
  #date(): readonly ReportedWarning[] {
    return this.#times.dated([...this.#warnings, ...this.#client.notes()], Date.now());
  }

  /** Records that the API lists and that cannot be used. */
  get leftOut(): LeftOut {
    return this.#leftOut;
  }

  /** Settles once nothing is under way. Never rejects. */
  async end(): Promise<void> {
    this.#end.abort();
    await this.#polling;
    this.#client.close();
  }
}
