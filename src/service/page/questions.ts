import type { DataQuestion, DataReply } from "./data-messages.ts";
import type { FromPage } from "./messages.ts";

/** Questions that wait at once; more are not asked. */
const MAX_WAITING = 64;
const DEADLINE_MS = 5000;

interface Waiting {
  readonly done: (reply: DataReply | undefined) => void;
  readonly timer: NodeJS.Timeout;
}

/** Questions of the page's thread to the service, each with a deadline. */
export class Questions {
  readonly #post: (message: FromPage) => void;
  readonly #deadlineMs: number;
  readonly #waiting = new Map<number, Waiting>();
  #next = 1;

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
      this.#waiting.set(id, { done, timer: setTimeout(() => this.#settle(id, undefined), this.#deadlineMs) });
      this.#post({ type: "question", id, question });
    });
  }

  take(id: number, reply: DataReply): void {
    this.#settle(id, reply);
  }

  close(): void {
    for (const id of [...this.#waiting.keys()]) this.#settle(id, undefined);
  }

  #settle(id: number, reply: DataReply | undefined): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    clearTimeout(waiting?.timer);
    waiting?.done(reply);
  }
}

type ReplyTo<Q extends DataQuestion> = Extract<DataReply, { readonly type: Q["type"] }>;
