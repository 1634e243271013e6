import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** A full collection, whatever the process was started with: what is left is held. */
export function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  // V8 frees the memory of buffers in another thread: the next collection begins by waiting for it.
  collect();
}
