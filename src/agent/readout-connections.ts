import type { ReasonError } from "../model/reason.ts";
import type { Asking } from "./asking.ts";
import type { DeviceShare } from "./device-time.ts";
import type { LearnedGroups } from "./learned-groups.ts";

/** Connections in a row that bring nothing, before a source without any answer is given up until the next readout. */
const MAX_BARREN = 5;
/** The same while it is not known how fast the device answers: each may take a whole time-out. */
const MAX_BARREN_UNKNOWN = 2;
/**
 * The same where the device has answered in this readout: what ends the connection is being searched. And for a person who reads once:
 * there is no next readout, and what is asked over each connection has not been asked before.
 */
const MAX_BARREN_ALIVE = 12;

/** What the connections of one readout have brought: whether another one is worth it, and after how many answers a device closes each. */
export class ReadoutConnections {
  readonly #asking: Asking;
  readonly #learned: LearnedGroups;
  readonly #share: DeviceShare;
  readonly #isThorough: boolean;
  #begun = 0;
  /** In a row, without any answer. */
  #barren = 0;
  /** In a row, that the device closed after an answer. */
  #quickLosses = 0;
  #lastAnswers = 0;

  constructor(asking: Asking, learned: LearnedGroups, share: DeviceShare, isThorough: boolean) {
    this.#asking = asking;
    this.#learned = learned;
    this.#share = share;
    this.#isThorough = isThorough;
  }

  /** The next one is open. */
  begin(): void {
    this.#begun++;
    if (this.#asking.answersHere > 0) this.#barren = 0;
  }

  /** The device would close it at the next request. The first of each readout shows whether it still does. */
  get isUsedUp(): boolean {
    const { answersPerConnection } = this.#learned;
    return answersPerConnection !== undefined && this.#begun > 1 && this.#asking.answersHere >= answersPerConnection;
  }

  /** This many brought nothing that the next would not either. */
  get areBarren(): boolean {
    if (this.#isThorough || this.#asking.answered > 0) return this.#barren >= MAX_BARREN_ALIVE;
    return this.#barren >= (this.#share.isPaceKnown() ? MAX_BARREN : MAX_BARREN_UNKNOWN);
  }

  /** A device that closes after each answer is no failing one: it is read over as many connections. */
  lost({ sessionLost }: ReasonError): void {
    const { answersHere, isStale } = this.#asking;
    if (answersHere === 0) {
      if (!isStale && !this.#share.isShadowed()) this.#barren++;
      this.#quickLosses = 0;
      return;
    }
    const isRepeated = sessionLost && this.#quickLosses > 0 && this.#lastAnswers === answersHere;
    if (isRepeated) this.#learned.answersPerConnection = answersHere;
    this.#quickLosses = sessionLost ? this.#quickLosses + 1 : 0;
    this.#lastAnswers = answersHere;
  }
}
