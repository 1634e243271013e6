import { type FaultError, PartialRefusal, type RefusedItem } from "../../src/model/fault.ts";
import type { Reading, Value } from "../../src/model/value.ts";
import type { Slot } from "./decode.ts";
import { GOOD, type ItemResults } from "./frames.ts";
import { describeRange, type S7Read } from "./plan.ts";
import { itemRefusal, miscountRefusal } from "./refusals.ts";

/** What is filled for one answer. */
interface Filled {
  readonly slots: readonly Slot[];
  readonly readings: Reading[];
}

/** By request, in turns: what one answer has filled stays as it is until the answer after the next. */
const turns = new WeakMap<S7Read, { readonly two: readonly [Filled, Filled]; last: 0 | 1 }>();

/**
 * The readings of a read whose items are in `data` as `results` says. Their objects are reused for the answer after the next to the same
 * request (Session.read says so): whoever keeps them longer copies them.
 * Throws FaultError: the device refused all items; PartialRefusal: it refused some.
 */
export function readingsOf(request: S7Read, data: Buffer, results: ItemResults): readonly Reading[] {
  let turn = turns.get(request);
  if (!turn) {
    turn = { two: [emptyFor(request), emptyFor(request)], last: 1 };
    turns.set(request, turn);
  }
  turn.last = turn.last === 0 ? 1 : 0;
  const { slots, readings } = turn.two[turn.last];
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

function emptyFor({ points }: S7Read): Filled {
  const value: Value = 0;
  const slots = points.map((): Slot => ({ quality: "good", value }));
  return { slots, readings: [...slots] };
}
