/** Bodies up to this size are not counted: as many as there are connections take 16 MiB. */
const SMALL_BYTES = 64 * 1024;

/** What BodyRoom.take gives for a body that is not counted: there is nothing to give back. */
export const NOTHING_TAKEN = (): void => {};

/** Room for the bodies that are being received, which no heap limit bounds: buffers lie outside of the heap. */
export class BodyRoom {
  #freeBytes: number;

  constructor(bytes: number) {
    this.#freeBytes = bytes;
  }

  /** What gives the room back, once or more; undefined: there is none for a body of this size now. */
  take(bytes: number): (() => void) | undefined {
    if (bytes <= SMALL_BYTES) return NOTHING_TAKEN;
    if (bytes > this.#freeBytes) return undefined;
    this.#freeBytes -= bytes;
    let isGiven = false;
    return () => {
      if (!isGiven) this.#freeBytes += bytes;
      isGiven = true;
    };
  }
}
