import type { Reading } from "../../src/model/value.ts";
import { ReusedReadings } from "../lib/reused-readings.ts";
import type { ModbusRead } from "./plan.ts";

const reused = new ReusedReadings<ModbusRead>();

/**
 * The readings of one answer to this request, one for each of its points. Their objects are reused for the answer after the next to the
 * same request (Session.read says so): whoever keeps them longer copies them.
 */
export function readingsOf(request: ModbusRead, data: Buffer): readonly Reading[] {
  const { slots, readings } = reused.next(request);
  const { decoders, offsets } = request;
  for (let i = 0; i < decoders.length; i++) {
    // Two constants, not a pair taken apart: that makes an array and an iterator for each value.
    const decode = decoders[i];
    const slot = slots[i];
    if (decode && slot) readings[i] = decode(data, offsets[i] ?? 0, slot);
  }
  return readings;
}
