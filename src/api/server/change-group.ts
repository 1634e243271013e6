import { errorCode } from "../../model/failure.ts";
import type { Database } from "./database.ts";

/** Longest work of one group before it is committed, milliseconds: what comes after it waits for the next one. */
const GROUP_MS = 10;

interface Waiting {
  /** Makes the change; throws what it is answered with. */
  readonly change: () => unknown;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Commits the changes of requests that arrive together in one transaction: making it durable costs as much for one change as for fifty. An
 * answer is given after its change is durable. Changes are made in the order in which they came, each whole or not at all, and one that is
 * refused takes no other with it. Its bound is what one turn of the event loop reads.
 */
export class ChangeGroup {
  readonly #db: Database;
  readonly #groupMs: number;
  readonly #group: (group: readonly Waiting[]) => readonly (() => void)[];
  readonly #one: (change: () => unknown) => unknown;
  #waiting: Waiting[] = [];

  constructor(db: Database, groupMs: number = GROUP_MS) {
    this.#db = db;
    this.#groupMs = groupMs;
    this.#group = db.transaction((group: readonly Waiting[]) => this.#make(group)).immediate;
    this.#one = db.transaction((change: () => unknown) => change()).immediate;
  }

  /** What `change` answers, once it is durable. Rejects with what it throws, or with SQLite's error: nothing of it is kept then. */
  run<T>(change: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      // What is resolved with is what this change has answered.
      this.#waiting.push({ change, resolve: resolve as (answer: unknown) => void, reject });
      if (this.#waiting.length === 1) setImmediate(() => this.flush());
    });
  }

  /** Makes all changes that wait. Before the database is closed. */
  flush(): void {
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      const settled = this.#commit(group);
      this.#waiting = [...group.slice(settled), ...this.#waiting];
    }
  }

  /** How many of them, from the first on, have their answer. */
  #commit(group: readonly Waiting[]): number {
    if (group.length === 1) return this.#commitAlone(group);
    let answers: readonly (() => void)[];
    try {
      answers = this.#group(group);
    } catch (error) {
      // Another process writes for longer than is waited for: it is not waited for once more for each.
      if (errorCode(error).startsWith("SQLITE_BUSY")) {
        for (const { reject } of group) reject(error);
        return group.length;
      }
      // The whole transaction failed and was rolled back, as on a full disk: each finds out for itself.
      return this.#commitAlone(group);
    }
    for (const answer of answers) answer();
    return answers.length;
  }

  #commitAlone(group: readonly Waiting[]): number {
    for (const { change, resolve, reject } of group) {
      try {
        resolve(this.#one(change));
      } catch (error) {
        reject(error);
      }
    }
    return group.length;
  }

  /** Within a transaction: the answers, to be given once it is committed. At least one change is made. */
  #make(group: readonly Waiting[]): readonly (() => void)[] {
    const until = performance.now() + this.#groupMs;
    const answers: (() => void)[] = [];
    for (const { change, resolve, reject } of group) {
      if (answers.length > 0 && performance.now() >= until) break;
      try {
        // Nested: a savepoint.
        const answer = this.#one(change);
        answers.push(() => resolve(answer));
      } catch (error) {
        if (!this.#db.inTransaction) throw error;
        answers.push(() => reject(error));
      }
    }
    return answers;
  }
}
