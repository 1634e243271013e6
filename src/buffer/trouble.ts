/** Without a failure for so long, it is over: a disk on the brink fails and works by turns. */
const SETTLED_MS = 3000;

/** What the operator is told of a file that takes nothing: once that it does, once that it no longer does. */
export interface Trouble {
  failed(why: string): void;
  /** A write has succeeded. */
  over(): void;
  /** To be called now and then: tells that it is over once that has lasted. */
  look(): void;
  /** How long everything has failed; 0: the last write succeeded. */
  lastsForMs(): number;
}

/** `now`: monotonic ms. */
export function createTrouble(file: string, alarm: (message: string) => void, now: () => number = () => performance.now()): Trouble {
  let failingSinceMs: number | undefined;
  let toldSinceMs: number | undefined;
  let lastFailureMs = 0;
  return {
    failed(why) {
      lastFailureMs = now();
      failingSinceMs ??= lastFailureMs;
      if (toldSinceMs === undefined) alarm(`the buffer ${file} takes no values: ${why}. They wait in memory and it is tried again`);
      toldSinceMs ??= lastFailureMs;
    },
    over() {
      failingSinceMs = undefined;
    },
    look() {
      if (toldSinceMs === undefined || failingSinceMs !== undefined || now() - lastFailureMs < SETTLED_MS) return;
      alarm(`the buffer ${file} takes values again, after ${Math.round((lastFailureMs - toldSinceMs) / 1000)} s`);
      toldSinceMs = undefined;
    },
    lastsForMs: () => (failingSinceMs === undefined ? 0 : Math.max(1, now() - failingSinceMs)),
  };
}
