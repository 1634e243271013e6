import type { Reading, Value } from "../../src/model/value.ts";
import type { Slot } from "./decode.ts";
import type { ModbusRead } from "./plan.ts";

/** What is filled for one answer. */
interface Filled {
  readonly slots: readonly Slot[];
  readonly readings: Reading[];
}

/** By request, in turns: what one answer has filled stays as it is until the answer after the next. */
const turns = new WeakMap<ModbusRead, { readonly two: readonly [Filled, Filled]; last: 0 | 1 }>();

/**
 * The readings of one answer to this request, one for each of its points. Their objects are reused for the answer after the next to the
 * same request (Session.read says so): whoever keeps them longer copies them.
 */
export function readingsOf(request: ModbusRead, data: Buffer): readonly Reading[] {
  let turn = turns.get(request);
  if (!turn) {
    turn = { two: [emptyFor(request), emptyFor(request)], last: 1 };
    turns.set(request, turn);
  }
  turn.last = turn.last === 0 ? 1 : 0;
  const { slots, readings } = turn.two[turn.last];
  const { decoders, offsets } = request;
  for (let i = 0; i < decoders.length; i++) {
    // Two constants, not a pair taken apart: that makes an array and an iterator for each value.
    const decode = decoders[i];
    const slot = slots[i];
    if (decode && slot) readings[i] = decode(data, offsets[i] ?? 0, slot);
  }
  return readings;
}

function emptyFor({ points }: ModbusRead): Filled {
  const value: Value = 0;
  const slots = points.map((): Slot => ({ quality: "good", value }));
  return { slots, readings: [...slots] };
}
