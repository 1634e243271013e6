import { closeSync, mkdirSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import type { NewBatch } from "../../../src/buffer/buffer.ts";
import type { BufferFile } from "../../../src/buffer/buffer-file.ts";
import { layoutKey } from "../../../src/buffer/codec.ts";
import { openBuffer } from "../../../src/buffer/open.ts";
import { openReader } from "../../../src/buffer/reader.ts";
import { ledgerFaults } from "../../../src/buffer/testing/ledger.ts";
import { plainLayout } from "../../../src/buffer/testing/readouts.ts";

/**
 * Runs under failio's shim: one small life of a buffer per n, in which the n-th write, fsync, truncation or rename fails (and as many after it
 * as `failures` says), is tried again until it is done, and is looked at after a reopening. Prints what it found as JSON.
 * Arguments: folder, control file, highest n, failures, errno's name.
 */
const [folder = "", control = "", highest = "0", failures = "1", code = "EIO"] = process.argv.slice(2);
const layout = plainLayout(2);
const key = layoutKey(layout);
const sink = { id: "a", takesExploration: false };
const errno = { EIO: constants.errno.EIO, ENOSPC: constants.errno.ENOSPC, EROFS: constants.errno.EROFS }[code] ?? constants.errno.EIO;
const fd = openSync(control, "r+");
/** Packs of half a dozen batches. */
const PACKING = { afterMs: 0, blockBytes: 6000, sliceMs: 0 };
const failed = { lives: 0, failed: 0, thrown: 0, slices: 0, faults: [] as string[], alarms: [] as string[] };

const arm = (n: number): void => {
  const bytes = Buffer.alloc(32);
  for (const [i, value] of [n, n === 0 ? 0 : Number(failures), errno, 0].entries()) bytes.writeBigInt64LE(BigInt(value), 8 * i);
  writeSync(fd, bytes, 0, 32, 0);
};
const hasFailed = (): boolean => {
  const bytes = Buffer.alloc(32);
  readSync(fd, bytes, 0, 32, 0);
  return bytes.readBigInt64LE(8) < BigInt(failures);
};
const batchOf = (seq: number): NewBatch => ({
  seq,
  layoutKey: key,
  time: 1_800_000_000_000,
  count: 2,
  explorationCount: 0,
  payload: new Uint8Array(900).fill(seq),
});
/** Until it is done; a disk that fails so often is another test's. */
function insist<T>(work: () => T): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return work();
    } catch (error) {
      failed.thrown++;
      if (attempt > 100) throw error;
    }
  }
}

for (let n = 1; n <= Number(highest); n++) {
  const state = join(folder, `life-${n}`);
  mkdirSync(state);
  const file = join(state, "buffer.db");
  const open = (): BufferFile =>
    openBuffer(file, {
      maxBytes: 200_000,
      maxAgeMs: 1e15,
      packing: PACKING,
      onAlarm: ({ text }) => failed.alarms.push(`n = ${n}: ${text}`),
    });
  arm(n);
  try {
    let buffer = insist(open);
    insist(() => buffer.setSinks([sink]));
    let accepted = 0;
    let seq = 0;
    for (let commit = 0; commit < 12; commit++) {
      const batches = Array.from({ length: 8 }, () => batchOf(++seq));
      accepted += insist(() => buffer.commit({ run: "r", layouts: [{ key, layout }], batches, acknowledgements: [] })).length;
      const reader = openReader(file);
      const ids = reader.read(0, Number.MAX_SAFE_INTEGER, 2000).map(({ id }) => id);
      reader.close();
      insist(() =>
        buffer.commit({
          run: "r",
          layouts: [],
          batches: [],
          acknowledgements: [{ sink: "a", ids, delivered: 2 * ids.length, dropped: {} }],
        }),
      );
      insist(() => buffer.maintain());
      // One that failed is not tried again at once: its rows stay as they are.
      try {
        while (buffer.pack()) failed.slices++;
      } catch {
        failed.thrown++;
      }
    }
    failed.faults.push(...ledgerFaults(buffer, file, () => false).map((what) => `n = ${n}: ${what}`));
    const before = JSON.stringify(buffer.ledger().sinks);
    buffer.close();
    failed.failed += hasFailed() ? 1 : 0;
    arm(0);
    buffer = open();
    if (accepted !== seq) failed.faults.push(`n = ${n}: ${accepted} of ${seq} batches accepted`);
    if (JSON.stringify(buffer.ledger().sinks) !== before) failed.faults.push(`n = ${n}: another ledger after the reopening`);
    failed.faults.push(...ledgerFaults(buffer, file, () => false).map((what) => `n = ${n}, reopened: ${what}`));
    buffer.close();
  } catch (error) {
    failed.faults.push(`n = ${n}: ${String(error)}`);
  }
  arm(0);
  failed.lives++;
  rmSync(state, { recursive: true });
}
closeSync(fd);
console.log(JSON.stringify(failed));
