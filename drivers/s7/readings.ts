import { type FaultError, PartialRefusal, type RefusedItem } from "../../src/model/fault.ts";
import type { Reading } from "../../src/model/value.ts";
import { ReusedReadings } from "../lib/reused-readings.ts";
import { GOOD, type ItemResults } from "./frames.ts";
import { describeRange, type S7Read } from "./plan.ts";
import { itemRefusal, miscountRefusal } from "./refusals.ts";

const reused = new ReusedReadings<S7Read>();

/**
 * The readings of a read whose items are in `data` as `results` says. Their objects are reused for the answer after the next to the same
 * request (Session.read says so): whoever keeps them longer copies them.
 * Throws FaultError: the device refused all items; PartialRefusal: it refused some.
 */
export function readingsOf(request: S7Read, data: Buffer, results: ItemResults): readonly Reading[] {
  const { slots, readings } = reused.next(request);
  const { items, decoders, offsets } = request;
  let refused = 0;
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (!item) continue;
    if (!isGood(results, i)) {
      refused++;
      continue;
    }
    const dataAt = results.dataAt[i] ?? 0;
    const end = item.firstPoint + item.points;
    for (let at = item.firstPoint; at < end; at++) {
      // Two constants, not a pair taken apart: that makes an array and an iterator for each value.
      const decode = decoders[at];
      const slot = slots[at];
      if (decode && slot) readings[at] = decode(data, dataAt + (offsets[at] ?? 0), slot);
    }
  }
  if (refused > 0) throw refusalOf(request, results, readings);
  return readings;
}

const isGood = ({ codes, miscounts }: ItemResults, i: number): boolean => codes[i] === GOOD && miscounts[i] === 0;

function refusalOf({ items }: S7Read, results: ItemResults, filled: readonly Reading[]): FaultError {
  const readings: (Reading | undefined)[] = [...filled];
  const refused: RefusedItem[] = [];
  for (const [i, item] of items.entries()) {
    if (isGood(results, i)) continue;
    const places = Array.from({ length: item.points }, (_, at) => item.firstPoint + at);
    for (const place of places) readings[place] = undefined;
    const code = results.codes[i] ?? 0;
    const range = describeRange(item);
    const refusal = code === GOOD ? miscountRefusal(results.miscounts[i] ?? 0, item.bytes, range) : itemRefusal(code, range);
    refused.push({ places, refusal });
  }
  const [first, ...others] = refused;
  if (!first) throw new TypeError("no item was refused");
  return refused.length === items.length ? first.refusal : new PartialRefusal(readings, [first, ...others]);
}
