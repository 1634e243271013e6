import { appendFileSync } from "node:fs";
import type { NewBatch } from "../../src/buffer/buffer.ts";
import { layoutKey } from "../../src/buffer/codec.ts";
import { openBuffer } from "../../src/buffer/open.ts";
import { plainLayout } from "../../src/buffer/testing/readouts.ts";
import { randomOf } from "../lab/powerloss/crashes.ts";

export const SINK = "sink";
/** Small, so that the WAL starts over often. */
export const MAX_BYTES = 2 ** 22;
export const layout = plainLayout(4);
const key = layoutKey(layout);

/** The payload of a batch, known from its number: what comes back is compared with it. */
export function payloadOf(seq: number): Uint8Array {
  const random = randomOf(seq);
  return Uint8Array.from({ length: 20 + Math.floor(random() * 1500) }, () => Math.floor(random() * 256));
}

export const batchOf = (seq: number): NewBatch => ({
  seq,
  layoutKey: key,
  time: Date.now(),
  count: 1 + (seq % 7),
  explorationCount: 0,
  payload: payloadOf(seq),
});

/** The sink takes nothing for half of so many commits, so that batches wait and are packed. */
const AWAY_COMMITS = 60;
/** Packs of a few dozen batches. */
const PACKING = { afterMs: 0, blockBytes: 20_000 };

/**
 * Appends, acknowledges and packs at random, and tells in the events file, line by line: `c <id> <seq>` once a batch is committed,
 * `t <id>` before it is acknowledged, `k <id>` once that is committed.
 */
export function run(file: string, events: string, commits: number, seed: number): void {
  const random = randomOf(seed);
  const buffer = openBuffer(file, { maxBytes: MAX_BYTES, maxAgeMs: 1e12, packing: PACKING, onAlarm: ({ text }) => console.error(text) });
  buffer.setSinks([{ id: SINK, takesExploration: false }]);
  const pending: number[] = [];
  let seq = 0;
  for (let n = 0; n < commits; n++) {
    const batches = Array.from({ length: Math.floor(random() * 8) }, () => batchOf(++seq));
    const isAway = n % AWAY_COMMITS < AWAY_COMMITS / 2;
    const ids = isAway ? [] : pending.splice(0, Math.floor(random() * 24));
    if (ids.length > 0) appendFileSync(events, ids.map((id) => `t ${id}\n`).join(""));
    const committed = buffer.commit({
      run: "power",
      layouts: [{ key, layout }],
      batches,
      acknowledgements: ids.length > 0 ? [{ sink: SINK, ids, delivered: Number.MAX_SAFE_INTEGER, dropped: {} }] : [],
    });
    const told = [...committed.map(({ id }, i) => `c ${id} ${batches[i]?.seq}\n`), ...ids.map((id) => `k ${id}\n`)];
    if (told.length > 0) appendFileSync(events, told.join(""));
    pending.push(...committed.map(({ id }) => id));
    for (let slice = Math.floor(random() * 4); slice > 0; slice--) buffer.pack();
  }
  buffer.close();
}
