const SLICE_MS = 5;
/** Steps between two looks at the clock. */
const STEPS = 32;

/** Long work in pieces, so that what else runs in this thread goes on: awaited after each step, and costs nothing while a slice lasts. */
export function createSlices(): () => Promise<void> | undefined {
  let steps = 0;
  let endMs = performance.now() + SLICE_MS;
  return () => {
    if (++steps % STEPS !== 0 || performance.now() < endMs) return undefined;
    return new Promise((done) => {
      setImmediate(() => {
        endMs = performance.now() + SLICE_MS;
        done();
      });
    });
  };
}
