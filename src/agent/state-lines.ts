import type { Log } from "../model/context.ts";

/** This many that were gathered are logged each by itself. */
const FEW = 3;
/** Others of the kind are gathered until none has come for so long, */
const QUIET_MS = 5000;
/** and for no longer than that. */
const LONGEST_MS = 60_000;
/** Names in the words of a line about many, */
const NAMED = 5;
/** and in its field `about`, by which `collector tail NAME` finds it. */
const FOUND = 1000;

/** A change of one source's state. */
export interface StateLine {
  readonly source: string;
  /** What changes of many sources have in common: `NO_ROUTE_TO_HOST`, `recovered`. */
  readonly kind: string;
  readonly level: "info" | "warn";
  /** After the number of sources: `data sources fail with NO_ROUTE_TO_HOST`. */
  readonly many: string;
  readonly fields: object;
  /** Logs the source's own line. */
  write(): void;
}

interface Gathering {
  timer: NodeJS.Timeout;
  /** Monotonic ms. */
  readonly beganMs: number;
  readonly held: StateLine[];
}

/**
 * The journal's lines about the states of all sources. Where a switch takes 180 machines with it, the first of a kind has its line at once,
 * and all that follow, until none has come for a moment, are one line with their number. A few that follow have lines of their own.
 */
export class StateLines {
  readonly #log: Log;
  readonly #gathered = new Map<string, Gathering>();

  /** `log` gets the lines about many. */
  constructor(log: Log) {
    this.#log = log;
  }

  add(line: StateLine): void {
    const there = this.#gathered.get(line.kind);
    if (!there) {
      this.#gather(line.kind);
      line.write();
      return;
    }
    there.held.push(line);
    const leftMs = there.beganMs + LONGEST_MS - performance.now();
    clearTimeout(there.timer);
    there.timer = this.#timer(line.kind, Math.max(0, Math.min(QUIET_MS, leftMs)));
  }

  /** Logs what is gathered. */
  flush(): void {
    for (const kind of [...this.#gathered.keys()]) this.#end(kind);
    for (const { timer } of this.#gathered.values()) clearTimeout(timer);
    this.#gathered.clear();
  }

  #gather(kind: string): void {
    this.#gathered.set(kind, { timer: this.#timer(kind, QUIET_MS), beganMs: performance.now(), held: [] });
  }

  #timer(kind: string, ms: number): NodeJS.Timeout {
    const timer = setTimeout(() => this.#end(kind), ms);
    timer.unref();
    return timer;
  }

  #end(kind: string): void {
    const gathering = this.#gathered.get(kind);
    if (!gathering) return;
    clearTimeout(gathering.timer);
    this.#gathered.delete(kind);
    const { held } = gathering;
    const [first] = held;
    if (!first) return;
    // More of them may be on their way.
    this.#gather(kind);
    if (held.length <= FEW) for (const line of held) line.write();
    else {
      const names = held.slice(0, NAMED).map(({ source }) => source);
      const more = held.length > NAMED ? ` and ${held.length - NAMED} more` : "";
      this.#log[first.level](
        { ...first.fields, sources: held.length, about: held.slice(0, FOUND).map(({ source }) => source) },
        `${held.length} more ${first.many}: ${names.join(", ")}${more}`,
      );
    }
  }
}
