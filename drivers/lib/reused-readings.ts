import type { Reading, Value } from "../../src/model/value.ts";

/** A good reading whose object is reused: ten thousand variables ten times a second would otherwise be most of what the heap collects. */
export interface Slot {
  readonly quality: "good";
  value: Value;
}

/** What is filled for one answer, along the points of its request. */
export interface Filled {
  readonly slots: readonly Slot[];
  readonly readings: Reading[];
}

/** A request, by which its readings are known. */
interface Asked {
  readonly points: readonly unknown[];
}

/** Readings by request, in turns: what one answer has filled stays as it is until the answer after the next (Session.read says so). */
export class ReusedReadings<R extends Asked> {
  readonly #turns = new WeakMap<R, { readonly two: readonly [Filled, Filled]; last: 0 | 1 }>();

  /** To be filled for the next answer to this request. */
  next(request: R): Filled {
    let turn = this.#turns.get(request);
    if (!turn) {
      turn = { two: [emptyFor(request), emptyFor(request)], last: 1 };
      this.#turns.set(request, turn);
    }
    turn.last = turn.last === 0 ? 1 : 0;
    return turn.two[turn.last];
  }
}

function emptyFor({ points }: Asked): Filled {
  const value: Value = 0;
  const slots = points.map((): Slot => ({ quality: "good", value }));
  return { slots, readings: [...slots] };
}
