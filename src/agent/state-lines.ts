import type { Log } from "../model/context.ts";

/** Lines of one kind that are logged at once, each by itself. */
const AT_ONCE = 3;
/** How long others of the kind are gathered. */
const GATHER_MS = 10_000;
/** Names in a line about many. */
const NAMED = 5;

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
  readonly timer: NodeJS.Timeout;
  atOnce: number;
  held: StateLine[];
}

/**
 * The journal's lines about the states of all sources. Where a switch takes 180 machines with it, the first three of a kind have a line each
 * at once, and what follows within ten seconds is one line with its number. A few that follow have lines of their own too.
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
    if (!there) this.#gather(line.kind, 1);
    else if (there.atOnce < AT_ONCE) there.atOnce++;
    else {
      there.held.push(line);
      return;
    }
    line.write();
  }

  /** Logs what is gathered. */
  flush(): void {
    for (const kind of [...this.#gathered.keys()]) this.#end(kind);
    for (const { timer } of this.#gathered.values()) clearTimeout(timer);
    this.#gathered.clear();
  }

  #gather(kind: string, atOnce: number): void {
    const timer = setTimeout(() => this.#end(kind), GATHER_MS);
    timer.unref();
    this.#gathered.set(kind, { timer, atOnce, held: [] });
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
    this.#gather(kind, AT_ONCE);
    if (held.length <= AT_ONCE) for (const line of held) line.write();
    else {
      const names = held.slice(0, NAMED).map(({ source }) => source);
      const more = held.length > NAMED ? ` and ${held.length - NAMED} more` : "";
      this.#log[first.level]({ ...first.fields, sources: held.length }, `${held.length} more ${first.many}: ${names.join(", ")}${more}`);
    }
  }
}
