import { type CommitGroup, suppressedIn, valuesIn } from "./commit-group.ts";
import { prepareUnsaved, readUnsaved, writeUnsaved } from "./unsaved.ts";

/** Keeps beside a file that takes nothing what would be lost uncounted if the process ended now, and counts it at the next start. */
export class Uncounted {
  readonly #file: string;
  readonly #run: string;
  readonly #say: (message: string) => void;
  /** The note beside the file says that something would be lost. */
  #isNoted = false;

  constructor(file: string, run: string, say: (message: string) => void) {
    this.#file = file;
    this.#run = run;
    this.#say = say;
  }

  /** True when there is a note that a commit makes out of date. */
  get isNoted(): boolean {
    return this.#isNoted;
  }

  /** Adds to the group what the last process could not store and could not count. Comes before the first note, which takes its place. */
  takeUp(group: CommitGroup): void {
    const unsaved = readUnsaved(this.#file);
    if (!unsaved) return;
    // In this process the host still has what waits, and says again what overflowed.
    const lost = unsaved.run === this.#run ? { ...unsaved, waiting: 0, overflow: 0 } : unsaved;
    group.addLost(lost);
    this.#isNoted = true;
    const values = lost.waiting + lost.notStored + lost.overflow;
    if (values > 0)
      this.#say(
        `the collector ended while the buffer ${this.#file} took no values: ${values} values of then are not stored, and counted as such now`,
      );
  }

  /** Makes the room for a note, where the buffer's file is. */
  prepare(): void {
    prepareUnsaved(this.#file);
  }

  /** Notes what is in the group, and `newOverflow` values that overflowed and are not in the file's account. */
  note(group: CommitGroup, newOverflow: number): void {
    // Values that batches left out were read, too, and are lost with them.
    const leftOut = suppressedIn(group.batches);
    const waiting = valuesIn(group.batches) + leftOut;
    const { not_stored: rejected = 0, overflow: before = 0 } = group.rejected;
    const notStored = rejected + group.suppressed - leftOut;
    const overflow = before + newOverflow;
    const isAny = waiting + notStored + overflow > 0;
    if (!isAny && !this.#isNoted) return;
    const { from, to } = (isAny ? group.span() : undefined) ?? {};
    const unsaved = { run: this.#run, waiting, notStored, overflow, ...(from !== undefined && to !== undefined && { from, to }) };
    if (writeUnsaved(this.#file, isAny ? unsaved : undefined)) this.#isNoted = isAny;
  }
}
