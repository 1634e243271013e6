/** Things that come and go in a list that is looked at again and again. */
export class Differences<T> {
  #known: ReadonlyMap<string, T> | undefined;

  /** `isEmpty`: the list was empty before the first call. */
  constructor(isEmpty = false) {
    this.#known = isEmpty ? new Map() : undefined;
  }

  /** The list of now, each with its key; those of the first call have not begun, unless the list was empty before. */
  note(list: readonly (readonly [key: string, one: T])[], begun: (one: T) => void, over: (one: T) => void = () => {}): void {
    const [before, now] = [this.#known, new Map(list)];
    this.#known = now;
    if (!before) return;
    for (const [key, one] of now) if (!before.has(key)) begun(one);
    for (const [key, one] of before) if (!now.has(key)) over(one);
  }
}
