const MIB = 1024 * 1024;
const PAGE_BYTES = 4096;
const MEASURED_MIB = 8;

/**
 * What a MiB of memory that was never touched costs on this machine, ms, the best of three: several in some virtual machines. An array of
 * 100,000 entries is most of a MiB that V8 fills in one go, so a bound of a few ms stands beside it.
 */
export function newMemoryMs(): number {
  return Math.min(...Array.from({ length: 3 }, touchMs)) / MEASURED_MIB;
}

function touchMs(): number {
  const memory = Buffer.allocUnsafeSlow(MEASURED_MIB * MIB);
  const beganMs = performance.now();
  for (let at = 0; at < memory.length; at += PAGE_BYTES) memory[at] = 1;
  return performance.now() - beganMs;
}
