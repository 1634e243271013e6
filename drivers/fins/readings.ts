import type { Reading } from "../../src/model/value.ts";
import { ReusedReadings } from "../lib/reused-readings.ts";
import type { FinsRead } from "./plan.ts";

const reused = new ReusedReadings<FinsRead>();

/**
 * The readings of a request whose values begin at `start` of `data`. Their objects are reused for the answer after the next to the same
 * request (Session.read says so): whoever keeps them longer copies them.
 */
export function readingsOf(request: FinsRead, data: Buffer, start: number): readonly Reading[] {
  const { slots, readings } = reused.next(request);
  const { decoders, offsets } = request;
  for (let i = 0; i < decoders.length; i++) {
    const decode = decoders[i];
    const slot = slots[i];
    if (decode && slot) readings[i] = decode(data, start + (offsets[i] ?? 0), slot);
  }
  return readings;
}
