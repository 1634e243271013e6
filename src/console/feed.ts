import type { ToldEvent, ToldParts, ToldSample, ToldVariable } from "../service/page/told.ts";

/** Points of a sparkline at most. */
const MAX_POINTS = 60;
/** A browser tries a lost stream again, but not one that was refused: it is opened again after so long. */
const REOPEN_MS = 5000;
/**
 * A stream on which nothing comes for so long is dead, although its connection says nothing: a machine without power, a laptop that slept. Four
 * times the pause after which the collector says that all is quiet.
 */
export const SILENT_MS = 60_000;

/** Null: the reading was bad. */
export type Line = readonly (number | null)[];

export type FeedState = "starting" | "live" | "away";

/** The open page's state, kept up to date by the collector's stream of events. */
export class Feed {
  #events: EventSource | undefined;
  #reopening: ReturnType<typeof setTimeout> | undefined;
  #path = "";
  #shownPath = "";
  #parts = new Map<string, unknown>();
  /** By the id of the part that has the newest value. */
  readonly #lines = new Map<string, (number | null)[]>();
  readonly #listeners = new Set<() => void>();
  #state: FeedState = "starting";
  /** How far the collector's clock is ahead of this one's. */
  #clockAheadMs = 0;
  version = 0;

  get state(): FeedState {
    return this.#state;
  }

  /** Epoch ms by the collector's clock. */
  get nowMs(): number {
    return Date.now() + this.#clockAheadMs;
  }

  part<Id extends keyof ToldParts>(id: Id): ToldParts[Id] | undefined {
    return this.#parts.get(id) as ToldParts[Id] | undefined;
  }

  /** The path whose parts these are; another than the open one until its stream begins. */
  get shownPath(): string {
    return this.#shownPath;
  }

  /** A part with a uuid in its id, such as `s-UUID`. */
  piece<Told>(id: string): Told | undefined {
    return this.#parts.get(id) as Told | undefined;
  }

  line(id: string): Line {
    return this.#lines.get(id) ?? [];
  }

  /**
   * Returns what ends it. `seen`: the version that the listener has shown; it is called at once where something was told since, as between drawing a
   * component and its effects.
   */
  subscribe(listener: () => void, seen: number): () => void {
    this.#listeners.add(listener);
    if (this.version !== seen) listener();
    return () => this.#listeners.delete(listener);
  }

  /** Opens the stream of another page; what was told of the one before stays until the new one begins. */
  open(path: string): void {
    if (path === this.#path) return;
    this.#path = path;
    this.#connect();
  }

  /** Opens the stream again, of a page that the browser kept while another was shown. */
  resume(): void {
    this.#connect();
  }

  #connect(): void {
    this.close();
    const path = this.#path;
    const events = new EventSource(`/events?path=${encodeURIComponent(path)}`);
    let isFirst = true;
    this.#events = events;
    events.addEventListener("parts", (event) => {
      this.#shownPath = path;
      this.#take(JSON.parse((event as MessageEvent<string>).data) as ToldEvent, isFirst);
      isFirst = false;
      this.#reopenAfter(SILENT_MS);
    });
    events.addEventListener("quiet", () => this.#reopenAfter(SILENT_MS));
    events.addEventListener("login", () => location.reload());
    events.onopen = () => this.#become("live");
    events.onerror = () => {
      if (events.readyState === EventSource.CLOSED) this.#reopenAfter(REOPEN_MS);
      this.#become("away");
    };
  }

  /** Unless something comes before. */
  #reopenAfter(ms: number): void {
    clearTimeout(this.#reopening);
    this.#reopening = setTimeout(() => {
      this.#become("away");
      this.#connect();
    }, ms);
  }

  close(): void {
    clearTimeout(this.#reopening);
    this.#events?.close();
  }

  #become(state: FeedState): void {
    this.#state = state;
    this.#tell();
  }

  #take({ title, at, parts }: ToldEvent, isFirst: boolean): void {
    this.#clockAheadMs = Date.parse(at) - Date.now();
    const known = isFirst ? new Map<string, unknown>() : this.#parts;
    const { version } = (this.#parts.get("head") ?? {}) as Partial<ToldParts["head"]>;
    // A source that was removed may come back.
    known.delete("gone");
    for (const [id, part] of Object.entries(parts)) {
      known.set(id, part);
      this.#addPoint(id, part);
    }
    this.#parts = known;
    // Another version of the collector has another console.
    if (version !== undefined && (this.part("head")?.version ?? version) !== version) location.reload();
    this.#forget();
    if (document.title !== title) document.title = title;
    this.#become("live");
  }

  /** The last value of a source or a variable, as a point of its line. */
  #addPoint(id: string, part: unknown): void {
    const value = id.startsWith("v-") ? (part as ToldSample | null)?.[2] : id.startsWith("r-") ? (part as ToldVariable).value : undefined;
    const number = value === undefined ? undefined : numberOf(value);
    if (number === undefined) return;
    const line = this.#lines.get(id) ?? [];
    line.push(number);
    if (line.length > MAX_POINTS) line.shift();
    this.#lines.set(id, line);
  }

  /** Parts of what is no longer there. */
  #forget(): void {
    const lists = { s: "sources", v: "sources", k: "sinks", r: "rows" } as const;
    const kept = new Map(Object.entries(lists).map(([letter, list]) => [letter, new Set(this.part(list) ?? [])]));
    for (const id of [...this.#parts.keys(), ...this.#lines.keys()]) {
      const uuids = id[1] === "-" ? kept.get(id[0] ?? "") : undefined;
      if (!uuids || uuids.has(id.slice(2))) continue;
      this.#parts.delete(id);
      this.#lines.delete(id);
    }
  }

  #tell(): void {
    this.version++;
    for (const listener of this.#listeners) listener();
  }
}

/** A value as JSON text, as a point of a line; undefined: it is no number. Pure. */
export function numberOf(text: string | null): number | null | undefined {
  if (text === null) return null;
  if (text === "true" || text === "false") return Number(text === "true");
  const number = Number(text.replace(/^"|"$/g, ""));
  return text.trim() === "" || !Number.isFinite(number) ? undefined : number;
}
