import type { DriverContext } from "../../../drivers/driver.ts";
import type { Output } from "../io.ts";

/** Between two states of the line. */
const PROGRESS_MS = 250;

export interface BrowseProgress {
  /** Something was found. */
  tell(seen: number, depth: number): void;
  /** The driver has come so far, where it looks for long and finds little. */
  readonly looked: NonNullable<DriverContext["progress"]>;
  end(): void;
}

/** A line that counts, on a terminal. `now`: monotonic ms. */
export function progressOn(output: Pick<Output, "isTTY" | "verbatim">, now: () => number = () => performance.now()): BrowseProgress {
  let lastMs = now();
  let isShown = false;
  let found = "0 nodes";
  let looked = "";
  const show = (): void => {
    if (!output.isTTY || now() - lastMs < PROGRESS_MS) return;
    lastMs = now();
    isShown = true;
    output.verbatim(`\r${found}${looked} … \x1b[K`);
  };
  return {
    tell(seen, depth) {
      found = `${seen} nodes, ${depth + 1} levels`;
      show();
    },
    looked(done, total) {
      looked = `, ${total === undefined ? done : `${done} of ${total}`} looked at`;
      show();
    },
    end() {
      if (isShown) output.verbatim("\r\x1b[K");
    },
  };
}
