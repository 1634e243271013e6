import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { openBuffer } from "../../src/buffer/open.ts";
import { isPending } from "../../src/buffer/position.ts";
import { openReader } from "../../src/buffer/reader.ts";
import { ledgerFaults } from "../../src/buffer/testing/ledger.ts";
import { type Crash, crashes } from "../lab/powerloss/crashes.ts";
import { buildShim } from "../lab/shim.ts";
import { MAX_BYTES, payloadOf, SINK } from "./workload.ts";

export interface PowerOptions {
  readonly images: number;
  readonly seed: number;
  readonly synchronous: "FULL" | "NORMAL";
}

export interface PowerResult {
  readonly images: number;
  /** Opened without an alarm and without being set aside. */
  readonly opened: number;
  /** Batches that were reported as committed before the power failed, over all images. */
  readonly committed: number;
  /** Of these, such as were neither acknowledged nor in the file. */
  readonly lost: number;
  /** Reported as acknowledged, and pending again. */
  readonly pendingAgain: number;
  /** Batches in a file whose bytes are not those that were written. */
  readonly altered: number;
  /** Images with packs. */
  readonly packed: number;
  /** Images whose ledger is not exact. */
  readonly inexact: number;
  /** The first things that were wrong. */
  readonly examples: readonly string[];
}

/** Images of one recording: many recordings of a few commits show more than a long one. */
const IMAGES_PER_RECORDING = 250;
const COMMITS = 250;
const MAX_EXAMPLES = 10;

/** Records lives of a buffer, builds crash images of them, and opens each. Needs gcc. */
export function soakPower({ images, seed, synchronous }: PowerOptions, onProgress: (done: number) => void = () => {}): PowerResult {
  const work = mkdtempSync(join(tmpdir(), "collector-power-"));
  const sum = { images: 0, opened: 0, committed: 0, lost: 0, pendingAgain: 0, altered: 0, packed: 0, inexact: 0 };
  const examples: string[] = [];
  try {
    const shim = buildShim("powerloss", work);
    for (let recording = 0; sum.images < images; recording++) {
      const folder = join(work, `life-${recording}`);
      const log = join(work, `log-${recording}`);
      mkdirSync(folder);
      const child = join(import.meta.dirname, "power-child.ts");
      const life = [child, join(folder, "buffer.db"), join(folder, "events"), String(COMMITS), String(seed + recording), synchronous];
      execFileSync(process.execPath, life, { env: { ...process.env, LD_PRELOAD: shim, PL_PREFIX: folder, PL_LOG: log } });
      const count = Math.min(IMAGES_PER_RECORDING, images - sum.images);
      for (const crash of crashes({ log, folder, images: count, seed: seed + recording, events: "events" })) {
        const target = join(work, "image");
        mkdirSync(target);
        crash.write(target);
        const found = look(crash, join(target, "buffer.db"));
        sum.images++;
        sum.opened += found.opened ? 1 : 0;
        sum.committed += found.committed;
        sum.lost += found.lost;
        sum.pendingAgain += found.pendingAgain;
        sum.altered += found.altered;
        sum.packed += found.hasPacks ? 1 : 0;
        sum.inexact += found.faults.length > 0 ? 1 : 0;
        for (const what of found.faults) if (examples.length < MAX_EXAMPLES) examples.push(`image ${sum.images}: ${what}`);
        rmSync(target, { recursive: true });
      }
      rmSync(folder, { recursive: true });
      rmSync(log);
      onProgress(sum.images);
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return { ...sum, examples };
}

/** Rows that are in no pack. */
function unpackedRows(file: string): number {
  const db = new Database(file, { readonly: true });
  const rows = db.prepare<[], number>("SELECT count(*) FROM batch").pluck().get() ?? 0;
  db.close();
  return rows;
}

function look({ events }: Crash, file: string) {
  const committed = new Map<number, number>();
  const tried = new Set<number>();
  const acknowledged = new Set<number>();
  for (const line of events.split("\n")) {
    const [what, id, seq] = line.split(" ");
    if (what === "c") committed.set(Number(id), Number(seq));
    else if (what === "t") tried.add(Number(id));
    else if (what === "k") acknowledged.add(Number(id));
  }
  const faults: string[] = [];
  const counts = { opened: true, committed: committed.size, lost: 0, pendingAgain: 0, altered: 0, hasPacks: false };
  const fail = (what: string): void => {
    counts.opened = false;
    faults.push(what);
  };
  try {
    const buffer = openBuffer(file, { maxBytes: MAX_BYTES, maxAgeMs: 1e12, onAlarm: ({ text }) => fail(text) });
    const reader = openReader(file);
    const list = reader.read(0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
    const rows = new Map(list.map((row) => [row.id, row]));
    if (rows.size < list.length) faults.push(`${list.length - rows.size} batches are there twice`);
    counts.hasPacks = rows.size > unpackedRows(file);
    const position = reader.position(SINK);
    for (const [id, seq] of committed) {
      const row = rows.get(id);
      if (!row && !tried.has(id)) counts.lost++;
      if (row && !Buffer.from(row.payload).equals(payloadOf(seq))) counts.altered++;
      if (acknowledged.has(id) && position && isPending(position, id)) counts.pendingAgain++;
    }
    faults.push(...ledgerFaults(buffer, file, () => false));
    reader.close();
    buffer.close();
  } catch (error) {
    fail(String(error));
  }
  if (counts.lost > 0) faults.push(`${counts.lost} committed batches lost`);
  return { ...counts, faults };
}
