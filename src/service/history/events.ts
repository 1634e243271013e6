import { withoutCredentials } from "../../base/plain-text.ts";
import { clip } from "../../model/bounded-failure.ts";
import { type Clock, timeAt, upMsOf } from "../../model/clock.ts";

export const EVENT_KINDS = ["source", "sink", "configuration", "access", "certificate", "start", "alarm"] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/** A change. It holds no secret. */
export interface HistoryEvent {
  /** Rises by at least one with each. */
  readonly id: number;
  /** ISO 8601 UTC, by the clock as it is now. */
  readonly at: string;
  readonly kind: EventKind;
  /** Name of a source, sink or key, address of a browser, code of an alarm; null: the collector. */
  readonly about: string | null;
  readonly text: string;
  readonly before?: string;
  readonly after?: string;
}

export type NewEvent = Omit<HistoryEvent, "id" | "at">;

/** Events of one kind: many of one kind do not push out those of another. */
const MAX_OF_KIND = 300;
/** Events of one kind about one thing: a source that comes and goes leaves the others room. */
const MAX_ABOUT_ONE = 20;
const MAX_TEXT = 500;

interface Kept extends NewEvent {
  readonly id: number;
  readonly upMs: number;
}

export interface EventQuestion {
  /** Only those with a higher number. */
  readonly after: number;
  /** Only those with this text in kind, name, text or value, whatever its case. */
  readonly search: string;
  /** Only those about this name, or about a variable of it; absent: about anything. */
  readonly about?: string | undefined;
  /** The latest so many. */
  readonly limit: number;
}

/** Changes and their times, within a bound for each kind and each thing. */
export class Events {
  readonly #clock: Clock;
  readonly #kept = new Map<EventKind, readonly Kept[]>();
  #next = 1;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(event: NewEvent): void {
    const { kind, about } = event;
    const kept = this.#kept.get(kind) ?? [];
    const alike = kept.filter((one) => one.about === about);
    const oldest = about !== null && alike.length >= MAX_ABOUT_ONE ? alike[0] : undefined;
    const rest = oldest ? kept.filter((one) => one !== oldest) : kept;
    const one = { ...shortened(event), id: this.#next++, upMs: upMsOf(this.#clock) };
    this.#kept.set(kind, [...rest, one].slice(-MAX_OF_KIND));
  }

  /** The newest first, and how many more fit. */
  find({ after, search, about, limit }: EventQuestion): { readonly events: readonly HistoryEvent[]; readonly more: number } {
    const wanted = search.toLowerCase();
    const found = [...this.#kept.values()]
      .flat()
      .filter((event) => event.id > after && isAbout(event, about) && (wanted === "" || textOf(event).includes(wanted)))
      .sort((one, other) => other.id - one.id);
    const events = found
      .slice(0, limit)
      .map(({ upMs, id, ...event }) => ({ id, at: new Date(timeAt(this.#clock, upMs)).toISOString(), ...event }));
    return { events, more: found.length - events.length };
  }
}

const textOf = ({ kind, about, text, before = "", after = "" }: Kept): string =>
  [kind, about ?? "", text, before, after].join(" ").toLowerCase();

const isAbout = (event: Kept, name: string | undefined): boolean =>
  name === undefined || event.about === short(name) || event.about?.startsWith(`${name}/`) === true;

/** Without passwords of URLs, which a search could find out character by character. */
const short = (text: string): string => clip(withoutCredentials(text), MAX_TEXT);

function shortened({ kind, about, text, before, after }: NewEvent): NewEvent {
  return {
    kind,
    about: about === null ? null : short(about),
    text: short(text),
    ...(before !== undefined && { before: short(before) }),
    ...(after !== undefined && { after: short(after) }),
  };
}
