import * as z from "zod";
import type { MemoryLocation } from "../../sink.ts";
import { SinkFile } from "../sink-file.ts";
import { nextBdSeq } from "./edge-node.ts";

const schema = z.object({ bdSeq: z.int().min(0).max(255) });
const WORDS = {
  name: "the file of the Sparkplug session",
  unread: "bdSeq begins at 0",
  unwritten: "bdSeq may repeat after a restart",
};

/**
 * The number that pairs an edge node's death with its birth, one more with each CONNECT. Kept in a small file over restarts of the process: the
 * last will of the connection before a restart may come late, and must not have the number of the birth after it.
 */
export class BdSeq {
  readonly #file: SinkFile<z.infer<typeof schema>>;
  #last: number | undefined;

  constructor(location: MemoryLocation) {
    this.#file = new SinkFile(location, `${location.uuid}.bdseq`, schema, WORDS);
    this.#last = this.#file.read()?.bdSeq;
  }

  /** The number of the next CONNECT, which is in the file when it returns. Never throws. */
  next(): number {
    this.#last = nextBdSeq(this.#last);
    this.#file.write({ bdSeq: this.#last });
    return this.#last;
  }

  /** `forget` removes the file. Never throws. */
  close(forget: boolean): void {
    if (forget) this.#file.remove();
  }
}
