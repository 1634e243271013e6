import type { DataQuestion, DataReply } from "./data-messages.ts";
import type { FromPage } from "./messages.ts";

/** Questions that wait at once; more are not asked. */
const MAX_WAITING = 64;
/** Between an answer and the next question: who floods the page has one question at a time answered, and the service reads on between two. */
const PAUSE_MS = 5;
const DEADLINE_MS = 5000;

interface Waiting {
  readonly question: DataQuestion;
  readonly done: (reply: DataReply | undefined) => void;
  readonly timer: NodeJS.Timeout;
}

/** Questions of the page's thread to the service, each with a deadline. */
export class Questions {
  readonly #post: (message: FromPage) => void;
  readonly #deadlineMs: number;
  /** The oldest first. */
  readonly #waiting = new Map<number, Waiting>();
  #next = 1;
  /** The one that was asked and not answered; undefined: the next may be asked. */
  #asked: number | undefined;

  constructor(post: (message: FromPage) => void, deadlineMs = DEADLINE_MS) {
    this.#post = post;
    this.#deadlineMs = deadlineMs;
  }

  /** Undefined: too many wait, or the service did not answer in time. Never rejects. */
  ask<Q extends DataQuestion>(question: Q): Promise<ReplyTo<Q> | undefined> {
    if (this.#waiting.size >= MAX_WAITING) return Promise.resolve(undefined);
    const id = this.#next++;
    return new Promise((settle) => {
      const done = (reply: DataReply | undefined): void => settle(reply?.type === question.type ? (reply as ReplyTo<Q>) : undefined);
      this.#waiting.set(id, { question, done, timer: setTimeout(() => this.#settle(id, undefined), this.#deadlineMs) });
      this.#askNext();
    });
  }

  /** `reply` undefined: the service could not answer. */
  take(id: number, reply: DataReply | undefined): void {
    this.#settle(id, reply);
  }

  close(): void {
    for (const id of [...this.#waiting.keys()]) this.#settle(id, undefined);
  }

  #askNext(): void {
    const [next] = this.#waiting;
    if (this.#asked !== undefined || !next) return;
    const [id, { question }] = next;
    this.#asked = id;
    this.#post({ type: "question", id, question });
  }

  #settle(id: number, reply: DataReply | undefined): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    clearTimeout(waiting?.timer);
    waiting?.done(reply);
    if (id !== this.#asked) return;
    setTimeout(() => {
      this.#asked = undefined;
      this.#askNext();
    }, PAUSE_MS).unref();
  }
}

type ReplyTo<Q extends DataQuestion> = Extract<DataReply, { readonly type: Q["type"] }>;
