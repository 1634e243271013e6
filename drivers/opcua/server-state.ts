import { type Warning, warning } from "../../src/model/warning.ts";
import { EARLIEST_TIME, LATEST_TIME, type RawValue } from "./binary.ts";
import { qualityOf } from "./status-codes.ts";

/** ServerState (OPC 10000-5, 12.6) by its numbers. */
const STATES = ["Running", "Failed", "NoConfiguration", "Suspended", "Shutdown", "Test", "CommunicationFault", "Unknown"] as const;
const RUNNING = 0;
/** A restart is a note for so long. */
const NOTED_MS = 24 * 3_600_000;

export interface ServerStateOptions {
  /** When the server began to run, as it says; undefined: it does not. */
  readonly startTime: string | undefined;
  /** The start in an earlier session. */
  readonly before: string | undefined;
  /** Monotonic ms. */
  readonly now: () => number;
  /** The state has changed: a sentence for the log. `isGood`: it is Running. */
  onChange(words: string, isGood: boolean): void;
}

/** The state of a server and the time since when it runs, by its own words. */
export class ServerState {
  readonly #options: ServerStateOptions;
  readonly #beganMs: number;
  #state: number | undefined;
  #serviceLevel: number | undefined;

  constructor(options: ServerStateOptions) {
    this.#options = options;
    this.#beganMs = options.now();
    const { startTime, before } = options;
    if (this.#hasStartedAgain) options.onChange(restartWords(startTime, before), true);
  }

  /** 0 to 255 (OPC 10000-4, 6.6.2.4); undefined: the server does not say. */
  get serviceLevel(): number | undefined {
    return this.#serviceLevel;
  }

  /** Answers to Reads of State and of ServiceLevel; one without a good value changes nothing. */
  take(raw: RawValue | undefined, level?: RawValue): void {
    if (level && qualityOf(level.status) === "good" && typeof level.value === "number") this.#serviceLevel = level.value;
    if (!raw || qualityOf(raw.status) !== "good" || typeof raw.value !== "number") return;
    const before = this.#state ?? RUNNING;
    this.#state = raw.value;
    if (raw.value === before) return;
    this.#options.onChange(raw.value === RUNNING ? "the server is Running again" : notRunning(raw.value), raw.value === RUNNING);
  }

  warnings(): readonly Warning[] {
    const { startTime, before, now } = this.#options;
    const isNoted = this.#hasStartedAgain && now() - this.#beganMs < NOTED_MS;
    return [
      ...(this.#state === undefined || this.#state === RUNNING ? [] : [warning("server_not_running", notRunning(this.#state))]),
      ...(isNoted ? [warning("server_restarted", restartWords(startTime, before))] : []),
    ];
  }

  /** `the server is Running, since 2026-11-20T09:00:00.000Z`. */
  get words(): string {
    const { startTime } = this.#options;
    const state = this.#state === undefined ? "does not tell its state" : `is ${nameOf(this.#state)}`;
    return `the server ${state}${startTime === undefined ? ", and does not tell since when it runs" : `, and runs since ${startTime}`}`;
  }

  get #hasStartedAgain(): boolean {
    const { startTime, before } = this.#options;
    return startTime !== undefined && before !== undefined && startTime !== before;
  }
}

/** Undefined where a server does not tell when it began. */
export const startTimeOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== EARLIEST_TIME && value !== LATEST_TIME ? value : undefined;

const nameOf = (state: number): string => STATES[state] ?? `in state ${state}`;
const notRunning = (state: number): string =>
  `the server says that it is ${nameOf(state)}, not Running: its values may not be those of the machine`;
const restartWords = (startTime = "", before = ""): string =>
  `the server has started again: it runs since ${startTime}, before it ran since ${before}`;
