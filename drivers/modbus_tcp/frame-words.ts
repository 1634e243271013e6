import { exceptionWords } from "./exceptions.ts";
import { AREA_WORDS, dataOf, exceptionOf, fence, frameLength, isFunctionCode } from "./frames.ts";
import { describeRead } from "./plan.ts";

/** See `Driver.frameWords`. */
export function frameWords(frame: Buffer, direction: "out" | "in"): string | undefined {
  if (frameLength(frame, 0) !== frame.length || frame.length < MIN_BYTES) return undefined;
  const [unit, code] = [frame.readUInt8(6), frame.readUInt8(7)];
  if (direction === "out")
    return fence(frame) === true && isFunctionCode(code)
      ? `read ${describeRead({ unit, functionCode: code, start: frame.readUInt16BE(8), count: frame.readUInt16BE(10) })}`
      : undefined;
  const exception = exceptionOf(frame);
  if (exception !== undefined) return `${exceptionWords(exception)} from unit ${unit}`;
  return isFunctionCode(code) ? `${dataOf(frame).length} bytes of ${AREA_WORDS[code]} from unit ${unit}` : undefined;
}

/** Header, function code and the byte behind it. */
const MIN_BYTES = 9;
