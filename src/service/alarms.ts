import type { Log } from "../model/context.ts";
import { isSameWarning, type RaiseAlarm, type ReportedWarning, reportedSince, type Warning, WarningTimes } from "../model/warning.ts";

/** The latest ones stay in the status. */
const MAX_ALARMS = 20;

/** Trouble of the collector itself: in the log, and in the status until it is over or, where nothing tells that, until the process ends. */
export class Alarms {
  readonly #log: Log;
  readonly #times = new WarningTimes();
  #raised: readonly ReportedWarning[] = [];

  constructor(log: Log) {
    this.#log = log;
  }

  readonly raise: RaiseAlarm = (alarm, isOver = false) => {
    if (isOver) {
      this.#log.info({ alarm: alarm.code }, alarm.text);
      this.#raised = this.#raised.filter((one) => !isSameWarning(one, alarm));
      return;
    }
    this.#log.error({ alarm: alarm.code }, alarm.text);
    this.#raised = [...this.#raised, reportedSince(alarm, new Date().toISOString())].slice(-MAX_ALARMS);
  };

  /** `notes`, which hold at this moment, and after them those that were raised, the oldest first. */
  list(notes: readonly Warning[]): readonly ReportedWarning[] {
    return [...this.#times.dated(notes, Date.now()), ...this.#raised];
  }
}
