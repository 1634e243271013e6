import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** A full collection, whatever the process was started with: what is left is held. */
export function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}
