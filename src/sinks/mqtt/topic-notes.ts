import { type Warning, warning } from "../../model/warning.ts";

/** Why nothing is published to a topic. */
interface Note {
  readonly text: string;
  /** The broker may take it another time; else when what is published there changes. */
  readonly isRefusal: boolean;
}

/** Between two rounds in which refused topics are tried again; twice as long after each that brought nothing. */
const PAUSE_MS = { least: 10_000, most: 60_000 } as const;
/** Topics of one round, or a tenth of them where that is more: the broker has other work. */
const ROUND = 20;
/** Notes for people. */
const MAX_TEXTS = 10;

/**
 * Topics of status, metadata and losses to which nothing is published, because the broker refuses it or because it is too large: why, and
 * when they are tried again. A note goes when the broker takes the topic, or when the topic is not used any more. Times are monotonic ms.
 */
export class TopicNotes {
  readonly #changed: () => void;
  /** The one that was tried longest ago first. */
  readonly #notes = new Map<string, Note>();
  #pauseMs: number = PAUSE_MS.least;
  #nextMs = 0;
  /** A refused topic was taken: the others may be, too. */
  #isOver = false;

  /** `changed` is called when the texts may have changed. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** Each in words, about its topic; of many the first, and how many there are. */
  warnings(): readonly Warning[] {
    const byText = new Map([...this.#notes].map(([topic, { text }]) => [text, topic]));
    const found = [...byText]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([text, topic]) => warning("topic_not_published", text, topic));
    const more = found.length - MAX_TEXTS;
    if (more <= 0) return found;
    return [
      ...found.slice(0, MAX_TEXTS),
      warning("topic_not_published", `nothing is published to ${more} more topics of status, metadata and losses`),
    ];
  }

  tooLarge(topic: string, text: string): void {
    this.#set(topic, { text, isRefusal: false });
  }

  refused(topic: string, text: string, nowMs: number): void {
    if (![...this.#notes.values()].some(({ isRefusal }) => isRefusal)) {
      this.#pauseMs = PAUSE_MS.least;
      this.#nextMs = nowMs + PAUSE_MS.least;
      this.#isOver = false;
    }
    this.#set(topic, { text, isRefusal: true });
  }

  /** The broker has taken a publish to the topic. */
  accepted(topic: string): void {
    const note = this.#notes.get(topic);
    if (!note) return;
    this.#notes.delete(topic);
    this.#isOver ||= note.isRefusal;
    this.#changed();
  }

  isRefused(topic: string): boolean {
    return this.#notes.get(topic)?.isRefusal === true;
  }

  /** Forgets the notes of topics that are not used any more. */
  keepOnly(isUsed: (topic: string) => boolean): void {
    const unused = [...this.#notes.keys()].filter((topic) => !isUsed(topic));
    for (const topic of unused) this.#notes.delete(topic);
    if (unused.length > 0) this.#changed();
  }

  /** The refused topics that are to be tried now: a round of them, or all once one was taken. */
  takeDue(nowMs: number): ReadonlySet<string> {
    const isOver = this.#isOver;
    if (!isOver && nowMs < this.#nextMs) return new Set();
    const refused = this.#refused();
    this.#isOver = false;
    this.#pauseMs = isOver ? PAUSE_MS.least : Math.min(this.#pauseMs * 2, PAUSE_MS.most);
    this.#nextMs = nowMs + this.#pauseMs;
    return new Set(isOver ? refused : refused.slice(0, Math.max(ROUND, Math.ceil(refused.length / 10))));
  }

  #set(topic: string, note: Note): void {
    const before = this.#notes.get(topic);
    this.#notes.delete(topic);
    this.#notes.set(topic, note);
    if (before?.text !== note.text) this.#changed();
  }

  #refused(): readonly string[] {
    return [...this.#notes.keys()].filter((topic) => this.isRefused(topic));
  }
}
