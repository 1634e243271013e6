import type { ApiAccess } from "../model/api-access.ts";

/** How the header `Authorization` has the key: alone, or after `Bearer `. */
export type KeyForm = NonNullable<ApiAccess["authorization"]>;

interface Path {
  /** Answered something else than 401, in the form that is settled. */
  hasWorked: boolean;
  /** Refused the key in both forms. */
  last: KeyForm | undefined;
}

const MAX_PATHS = 100;
const otherThan = (form: KeyForm): KeyForm => (form === "bare" ? "bearer" : "bare");

/**
 * Finds out in which form a server takes the key. The key alone is first; after a 401 the other form is tried once for each path, because
 * a server may answer 401 for paths that it does not have. A success settles the form for all paths. A path that refused both is
 * asked in one form at a time from then on, each in its turn, so that it is found out too when the server takes another one later.
 */
export class AuthorizationForm {
  #form: KeyForm = "bare";
  #isSettled = false;
  #key: string | undefined;
  readonly #paths = new Map<string, Path>();

  /** What to send first. Another key begins from the start. */
  first(path: string, key: string): KeyForm {
    if (key !== this.#key) {
      this.#key = key;
      this.#unsettle();
    }
    const last = this.#paths.get(path)?.last;
    return this.#isSettled || last === undefined ? this.#form : otherThan(last);
  }

  /** The form to try next, after this one was answered with a status; undefined: there is none. */
  answered(path: string, form: KeyForm, status: number): KeyForm | undefined {
    const known = this.#pathOf(path);
    if (status !== 401) {
      // A path that is not there may be refused before the key is looked at: that settles nothing, unless the other form had a 401 there.
      const isTaken = status < 400 || (known.last !== undefined && known.last !== form);
      if (!isTaken) return undefined;
      if (!this.#isSettled || form !== this.#form) this.#settle(form);
      this.#pathOf(path).hasWorked = true;
      return undefined;
    }
    if (this.#isSettled && form === this.#form && !known.hasWorked) return undefined;
    // What took the key in this form does not any more.
    if (this.#isSettled && form === this.#form) this.#unsettle();
    const { last } = this.#pathOf(path);
    this.#pathOf(path).last = form;
    return last === undefined ? otherThan(form) : undefined;
  }

  #settle(form: KeyForm): void {
    this.#form = form;
    this.#isSettled = true;
    this.#paths.clear();
  }

  #unsettle(): void {
    this.#isSettled = false;
    this.#paths.clear();
  }

  #pathOf(path: string): Path {
    const known = this.#paths.get(path);
    if (known) return known;
    if (this.#paths.size >= MAX_PATHS) this.#paths.clear();
    const fresh: Path = { hasWorked: false, last: undefined };
    this.#paths.set(path, fresh);
    return fresh;
  }
}
