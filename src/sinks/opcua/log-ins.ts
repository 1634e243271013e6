import { budgetLog } from "../../lib/log-budget.ts";
import type { Log } from "../../model/context.ts";
import { type Warning, warning } from "../../model/warning.ts";
import type { Attempt } from "./lockout.ts";
import type { Users } from "./users.ts";

/** Refused log-ins in the log, in a minute: a client with an old password tries again all day. */
const REFUSED_PER_MINUTE = 6;
const MAX_NAME = 100;
/** Users and addresses that are in the notes; the longest quiet is forgotten first. */
const MAX_NOTED = 10;
/** How long a refused log-in is in the notes. */
const NOTED_MS = 3_600_000;

interface Refused {
  readonly count: number;
  readonly lastMs: number;
  /** Until when no password is looked at; not later than now: it is. */
  readonly untilMs: number;
}

export interface LogInsOptions {
  readonly log: Log;
  /** What the notes say has changed. */
  readonly onChange?: () => void;
  /** Wall clock, ms. */
  readonly nowMs?: () => number;
}

/** The users as the server asks them; each refused log-in and each lock-out leaves a line in the log, in a budget, and a note. */
export class LogIns {
  readonly #users: Users;
  readonly #log: Log;
  readonly #lockOutLog: Log;
  readonly #onChange: () => void;
  readonly #nowMs: () => number;
  /** By user and address; the one refused last is the last. */
  readonly #refused = new Map<string, Refused>();

  constructor(users: Users, { log, onChange = () => {}, nowMs = Date.now }: LogInsOptions) {
    this.#users = users;
    this.#log = budgetLog(log, { linesPerMinute: REFUSED_PER_MINUTE, of: "refused log-ins to the OPC UA server" });
    this.#lockOutLog = budgetLog(log, { linesPerMinute: REFUSED_PER_MINUTE, of: "lock-outs of the OPC UA server" });
    this.#onChange = onChange;
    this.#nowMs = nowMs;
  }

  /** See Users.check. */
  async check(attempt: Attempt, password: string): Promise<boolean> {
    const wasLocked = this.#users.lockedForMs(attempt) > 0;
    const isIn = await this.#users.check(attempt, password);
    if (!isIn) this.#onRefused(attempt, wasLocked);
    else if (this.#refused.delete(wordsOf(attempt))) this.#onChange();
    return isIn;
  }

  /** The users that were refused in the last hour, and until when somebody is locked out. */
  warnings(): readonly Warning[] {
    const nowMs = this.#nowMs();
    for (const [who, { lastMs }] of this.#refused) if (nowMs - lastMs >= NOTED_MS) this.#refused.delete(who);
    return [...this.#refused].map(([who, { count, lastMs, untilMs }]) =>
      untilMs > nowMs
        ? warning(
            "log_in_locked",
            `log-ins as ${who} are locked out until ${timeOf(untilMs)}: too many wrong passwords within a minute`,
            who,
          )
        : warning(
            "log_in_refused",
            `${count === 1 ? "a log-in" : `${count} log-ins`} as ${who} ${count === 1 ? "was" : "were"} refused, the last at ${timeOf(lastMs)}: no such user, or a wrong password`,
            who,
          ),
    );
  }

  #onRefused(attempt: Attempt, wasLocked: boolean): void {
    const lastMs = this.#nowMs();
    const lockedForMs = this.#users.lockedForMs(attempt);
    const who = wordsOf(attempt);
    const before = this.#refused.get(who);
    const untilMs = lockedForMs > 0 ? (wasLocked && before ? before.untilMs : lastMs + lockedForMs) : 0;
    this.#refused.delete(who);
    this.#refused.set(who, { count: (before?.count ?? 0) + 1, lastMs, untilMs });
    const oldest = this.#refused.keys().next().value;
    if (this.#refused.size > MAX_NOTED && oldest !== undefined) this.#refused.delete(oldest);
    const fields = { client: attempt.address, user: attempt.user.slice(0, MAX_NAME) };
    if (lockedForMs === 0) this.#log.warn(fields, "the OPC UA server refused a log-in: no such user, or a wrong password");
    else if (!wasLocked)
      this.#lockOutLog.warn(
        { ...fields, until: new Date(untilMs).toISOString() },
        `the OPC UA server looks at no password of this user from this address until ${timeOf(untilMs)}: too many were wrong within a minute`,
      );
    this.#onChange();
  }
}

const wordsOf = ({ user, address }: Attempt): string => `${JSON.stringify(user.slice(0, MAX_NAME))} from ${address}`;

/** UTC, to the second. */
const timeOf = (ms: number): string => `${new Date(Math.ceil(ms / 1000) * 1000).toISOString().slice(0, 19)}Z`;
