import { createReadingScratch, type ReadingScratch } from "../buffer/reading-scratch.ts";

/** Scratches that nobody has at the moment. Several readouts may be gone over at once: each has its own. */
export interface Scratches {
  /** One for readouts of `variables` each. */
  lease(variables: number): ReadingScratch;
  /** It is used no more by who leased it. */
  giveBack(scratch: ReadingScratch): void;
}

/** As many as sinks write at once as a rule; more are made, and left to the garbage collector. */
const KEPT = 8;
/** Places of all that are kept. */
const KEPT_PLACES = 65_536;

export function createScratches(): Scratches {
  const spare: ReadingScratch[] = [];
  let places = 0;
  return {
    lease(variables) {
      const fitting = spare.findIndex((scratch) => scratch.length() === variables);
      const [scratch] = spare.splice(fitting < 0 ? spare.length - 1 : fitting, 1);
      if (!scratch) return createReadingScratch();
      places -= scratch.capacity();
      return scratch;
    },
    giveBack(scratch) {
      scratch.clear();
      if (spare.length >= KEPT || places + scratch.capacity() > KEPT_PLACES) return;
      places += scratch.capacity();
      spare.push(scratch);
    },
  };
}
