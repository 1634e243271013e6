/**
 * Whether a text file ends within a line that went on before: then it is the beginning of what was there, and what wrote it was ended before
 * the rest. One that was shortened by an editor ends with a line. Pure.
 */
export function isBrokenOff(now: Uint8Array, before: Uint8Array): boolean {
  const { length } = now;
  // In UTF-16 a line end is no single byte.
  if (length === 0 || length >= before.length || isUtf16(now)) return false;
  return !endsLine(now) && !isBreak(before[length]) && Buffer.compare(now, before.subarray(0, length)) === 0;
}

/** True: a text file ends with a line end. */
export const endsLine = (bytes: Uint8Array): boolean => isBreak(bytes[bytes.length - 1]);

const isBreak = (byte: number | undefined): boolean => byte === 0x0a || byte === 0x0d;
const isUtf16 = ([first, second]: Uint8Array): boolean => (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
