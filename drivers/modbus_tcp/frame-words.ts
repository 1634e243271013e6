import { exceptionWords } from "./exceptions.ts";
import { AREA_WORDS, dataOf, exceptionOf, fence, frameLength, isFunctionCode } from "./frames.ts";
import { describeRead } from "./plan.ts";
import { fromRtu } from "./rtu.ts";

/** See `Driver.frameWords`. Frames of Modbus TCP, and those of a serial line by their CRC. */
export function frameWords(bytes: Buffer, direction: "out" | "in"): string | undefined {
  const frame = frameLength(bytes, 0) === bytes.length ? bytes : fromRtu(bytes, 0);
  if (!frame || frame.length < MIN_BYTES) return undefined;
  const [unit, code] = [frame.readUInt8(6), frame.readUInt8(7)];
  if (direction === "out") return fence(frame) === true ? requestWords(frame, unit, code) : undefined;
  const exception = exceptionOf(frame);
  if (exception !== undefined) return `${exceptionWords(exception)} from unit ${unit}`;
  if (code === IDENTIFY) return `identification of unit ${unit}`;
  return isFunctionCode(code) ? `${dataOf(frame).length} bytes of ${AREA_WORDS[code]} from unit ${unit}` : undefined;
}

function requestWords(frame: Buffer, unit: number, code: number): string | undefined {
  if (code === IDENTIFY) return `read the identification of unit ${unit}`;
  if (!isFunctionCode(code)) return undefined;
  if (code !== FILE)
    return `read ${describeRead({ unit, functionCode: code, start: frame.readUInt16BE(8), count: frame.readUInt16BE(10) })}`;
  const [file, start, count] = [frame.readUInt16BE(10), frame.readUInt16BE(12), frame.readUInt16BE(14)];
  return `read ${describeRead({ unit, functionCode: code, start, count, file })}`;
}

const [FILE, IDENTIFY] = [20, 43];
/** Header, function code and the byte behind it. */
const MIN_BYTES = 9;
