import { formatDuration } from "../../base/duration.ts";
import { sleep } from "../../base/timer.ts";
import { messageOf, toReasonError } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";
import { type Warning, warning } from "../../model/warning.ts";

/** Longest time of the first of two tries: the second broker has its turn within the time that an opening has (60 s). */
const FIRST_TRY_MS = 30_000;
/** The first broker is not waited for again so soon after a failure, where the connection to the second one breaks. */
const RECENT_MS = 60_000;
/** Longest pause between looks at the first broker, where returns to it were fruitless. */
const LONGEST_MS = 3_600_000;

/** Knowledge of two brokers in order of preference, which outlasts the openings of a sink. Times are monotonic ms. */
export interface PreferenceMemory {
  /** Why the first broker could not be opened last, and when. */
  failure: { readonly atMs: number; readonly why: string } | undefined;
  /** The first broker was found reachable: the next opening tries it first. */
  isReturning: boolean;
  /** Returns in a row after which it could not be opened all the same. */
  fruitless: number;
}

export const newPreference = (): PreferenceMemory => ({ failure: undefined, isReturning: false, fruitless: 0 });

export interface Preferred<T> {
  readonly memory: PreferenceMemory;
  /** `host:port` of the second broker, for words. */
  readonly second: string;
  readonly openFirst: (signal: AbortSignal) => Promise<T>;
  readonly openSecond: (signal: AbortSignal) => Promise<T>;
  readonly signal: AbortSignal;
}

/** Opens the first of two brokers, or else the second. Throws ReasonError that tells the failures of both. */
export async function openPreferred<T>({ memory, second, openFirst, openSecond, signal }: Preferred<T>): Promise<T> {
  const { failure, isReturning } = memory;
  const tryFirst = async (until: AbortSignal): Promise<T> => {
    try {
      const opened = await openFirst(until);
      Object.assign(memory, newPreference());
      return opened;
    } catch (error) {
      if (isReturning) memory.fruitless++;
      memory.isReturning = false;
      const late = until.aborted && !signal.aborted;
      const reason = late ? new ReasonError("TIMEOUT", `it did not open within ${FIRST_TRY_MS / 1000} s`) : toReasonError(error);
      memory.failure = { atMs: performance.now(), why: messageOf(reason) };
      throw reason;
    }
  };
  const isRecent = failure !== undefined && !isReturning && performance.now() - failure.atMs < RECENT_MS;
  const [one, other] = isRecent ? [openSecond, tryFirst] : [tryFirst, openSecond];
  try {
    return await one(AbortSignal.any([signal, AbortSignal.timeout(FIRST_TRY_MS)]));
  } catch (failed) {
    if (signal.aborted) throw failed;
    try {
      return await other(signal);
    } catch (failedToo) {
      if (signal.aborted) throw failedToo;
      const [ofFirst, ofSecond] = (isRecent ? [failedToo, failed] : [failed, failedToo]).map(toReasonError);
      throw bothFailed(ofFirst, ofSecond, second);
    }
  }
}

/** The first broker's failure, with the second one's words. */
function bothFailed(first: ReasonError | undefined, other: ReasonError | undefined, second: string): ReasonError {
  const { reason = "UNKNOWN", message = "", condition } = first ?? {};
  const options = { cause: first, ...(condition && { condition }), nextStep: first?.nextStep };
  return new ReasonError(reason, `${message}; the second broker ${second}: ${other?.message ?? ""}`, options);
}

export interface SecondBrokerOptions {
  /** `host:port` of each. */
  readonly first: string;
  readonly second: string;
  readonly memory: PreferenceMemory;
  readonly returnAfterMs: number;
  /** Opens the way to the first broker, without a session, and closes it. Throws where it is not open. */
  readonly look: (signal: AbortSignal) => Promise<void>;
}

/**
 * The second of two brokers while it is used: looks at the first one now and then. A look opens no session, because two brokers of one cluster
 * would end the session of the same client_id that carries the values.
 */
export class SecondBroker {
  readonly endpoint: string;
  /** Settles once the first broker can be reached again. */
  readonly returned: Promise<ReasonError>;
  readonly #options: SecondBrokerOptions;
  readonly #stop = new AbortController();

  constructor(options: SecondBrokerOptions) {
    this.#options = options;
    this.endpoint = options.second;
    this.returned = new Promise((done) => {
      void this.#look(done);
    });
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Names the broker in use, and why. */
  warning(): Warning {
    const { first, second, memory } = this.#options;
    const why = memory.failure === undefined ? "" : `: ${memory.failure.why}`;
    const text = `values go to the second broker ${second}, because ${first} cannot be opened${why}; it is tried again every ${formatDuration(this.#pauseMs())}`;
    return warning("second_broker_in_use", text, second);
  }

  #pauseMs(): number {
    const { returnAfterMs, memory } = this.#options;
    return Math.min(returnAfterMs * 2 ** Math.min(memory.fruitless, 20), Math.max(returnAfterMs, LONGEST_MS));
  }

  async #look(done: (reason: ReasonError) => void): Promise<void> {
    const { first, memory, look } = this.#options;
    const { signal } = this.#stop;
    while (await sleep(this.#pauseMs(), signal)) {
      try {
        await look(signal);
        if (signal.aborted) return;
        memory.isReturning = true;
        return done(new ReasonError("UNKNOWN", `the first broker ${first} can be reached again: reconnecting to it`));
      } catch (error) {
        if (!signal.aborted) memory.failure = { atMs: performance.now(), why: messageOf(error) };
      }
    }
  }
}
