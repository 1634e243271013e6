/** Above the places of any readout. */
const PLACES = 1024;
/** The name of messages with values that the disk never took. */
const UNSTORED = /^.{8}u-/;

export interface ReceivedValue {
  readonly place: number;
  readonly value: unknown;
}

/** Some values of a readout whose number is in others of it. */
interface Piece {
  readonly key: string;
  readonly isUnstored: boolean;
  readonly places: readonly number[];
}

/** What one receiver has, by the number of the readout and the place of the value in it. */
export class Received {
  readonly #valuesOf: (number: number) => number;
  /** How often, by number times PLACES plus place. */
  readonly #times = new Map<number, number>();
  /** Of these, what came unstored. */
  readonly #unstored = new Set<number>();
  /** What a readout is known by, beside its number. */
  readonly #numbers = new Map<string, number>();
  readonly #pieces: Piece[] = [];

  constructor(valuesOf: (number: number) => number) {
    this.#valuesOf = valuesOf;
  }

  /** Returns the number of the readout, where one of the values is it. `key`: what all pieces of the readout have in common. */
  readout(id: string, key: string, values: readonly ReceivedValue[]): number | undefined {
    const isUnstored = UNSTORED.test(id);
    const byNumber = Map.groupBy(values, ({ value }) => (typeof value === "number" ? value : undefined));
    const bools = (byNumber.get(undefined) ?? []).map(({ place }) => place);
    byNumber.delete(undefined);
    for (const [number, found] of byNumber)
      if (number !== undefined)
        this.#add(
          number,
          isUnstored,
          found.map(({ place }) => place),
        );
    const [number] = byNumber.keys();
    if (number === undefined) this.#pieces.push({ key, isUnstored, places: bools });
    else if (bools.length > 0) {
      this.#numbers.set(key, number);
      this.#add(number, isUnstored, bools);
    }
    return number;
  }

  /** In values: what came of readouts that were stored and that `counts` takes, and what the file never had. */
  counts(counts: (number: number) => boolean) {
    for (const { key, isUnstored, places } of this.#pieces.splice(0)) {
      const number = this.#numbers.get(key);
      if (number !== undefined) this.#add(number, isUnstored, places);
    }
    let [received, duplicates] = [0, 0];
    for (const [key, times] of this.#times) {
      duplicates += times - 1;
      if (!this.#unstored.has(key) && counts(Math.floor(key / PLACES))) received++;
    }
    const missing = (numbers: readonly number[]): number => {
      const places = (number: number) => Array.from({ length: this.#valuesOf(number) }, (_, place) => number * PLACES + place);
      return numbers.reduce((sum, number) => sum + places(number).filter((key) => !this.#times.has(key)).length, 0);
    };
    return { received, unstored: this.#unstored.size, duplicates, missing };
  }

  #add(number: number, isUnstored: boolean, places: readonly number[]): void {
    for (const place of places) {
      const key = number * PLACES + place;
      const times = this.#times.get(key) ?? 0;
      if (times === 0 && isUnstored) this.#unstored.add(key);
      this.#times.set(key, times + 1);
    }
  }
}
