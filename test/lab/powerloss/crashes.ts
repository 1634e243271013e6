import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** One thing that was asked of the disk (shim.c says what the letters mean). `name` is relative to the watched folder, "" is the folder. */
interface Operation {
  readonly op: "w" | "a" | "t" | "s" | "u" | "r";
  readonly name: string;
  readonly offset: number;
  readonly data: Buffer;
}

/** What a disk may hold after its power failed at one moment. */
export interface Crash {
  /** What the program had said until then: the text of the events file, of which nothing is ever lost. */
  readonly events: string;
  readonly files: ReadonlyMap<string, Buffer>;
  /** Writes the files into an empty folder. */
  write(folder: string): void;
}

export interface CrashOptions {
  /** What shim.so wrote. */
  readonly log: string;
  /** The watched folder. */
  readonly folder: string;
  readonly images: number;
  readonly seed: number;
  /** Name of the file in the watched folder that the program tells its events in. */
  readonly events: string;
}

/**
 * Crash images, in the order of the moments they are of. Synced writes survive; each unsynced one survives not at all, wholly, or in
 * pieces of 512 bytes (one mode per image); renames and unlinks survive in order up to some point, all of them once the folder is synced.
 * Not modelled: a new file whose name is lost although it was synced, reordering across an fsync, a disk that lies.
 */
export function* crashes({ log, folder, images, seed, events }: CrashOptions): Generator<Crash> {
  const operations = readLog(log, folder);
  const random = randomOf(seed);
  const moments = operations.flatMap(({ name }, i) => (name === events ? [] : [i + 1]));
  const cuts = Array.from({ length: images }, () => moments[Math.floor(random() * moments.length)] ?? 0).sort((a, b) => a - b);
  const synced = new Map<string, Buffer>();
  const pending = new Map<string, Operation[]>();
  let names: Operation[] = [];
  let text = "";
  let done = 0;
  for (const [image, cut] of cuts.entries()) {
    for (; done < cut; done++) {
      const operation = operations[done];
      if (!operation) break;
      const { op, name } = operation;
      if (name === events) text += operation.data.toString();
      else if (op === "r" || op === "u") names.push(operation);
      else if (op !== "s") {
        const writes = pending.get(name);
        if (writes) writes.push(operation);
        else pending.set(name, [operation]);
      } else if (name === "") {
        for (const change of names) applyName(synced, pending, change);
        names = [];
      } else {
        synced.set(name, (pending.get(name) ?? []).reduce(applied, synced.get(name) ?? Buffer.alloc(0)));
        pending.delete(name);
      }
    }
    const files = new Map(synced);
    const lost = new Map(pending);
    for (const [name, writes] of lost) {
      const survived = writes.flatMap((write) => survivors(write, image % 3, random));
      const before = files.get(name);
      if (survived.length > 0 || before) files.set(name, survived.reduce(applied, Buffer.from(before ?? Buffer.alloc(0))));
    }
    const changes = Math.floor(random() * (names.length + 1));
    for (const change of names.slice(0, changes)) applyName(files, lost, change);
    yield {
      events: text,
      files,
      write(target) {
        for (const [name, bytes] of files) writeFileSync(join(target, name), bytes);
      },
    };
  }
}

function survivors(write: Operation, mode: number, random: () => number): Operation[] {
  if (mode === 0) return [];
  if (mode === 1 || write.op !== "w") return random() < 0.5 ? [write] : [];
  const pieces: Operation[] = [];
  for (let at = 0; at < write.data.length; at += 512)
    if (random() < 0.5) pieces.push({ ...write, offset: write.offset + at, data: write.data.subarray(at, at + 512) });
  return pieces;
}

/** Changes `file` in place where it can. */
function applied(file: Buffer, { op, offset, data }: Operation): Buffer {
  if (op === "t") return file.length >= offset ? file.subarray(0, offset) : Buffer.concat([file, Buffer.alloc(offset - file.length)]);
  const at = op === "a" ? file.length : offset;
  const missing = at + data.length - file.length;
  const whole = missing > 0 ? Buffer.concat([file, Buffer.alloc(missing)]) : file;
  data.copy(whole, at);
  return whole;
}

function applyName(files: Map<string, Buffer>, pending: Map<string, Operation[]>, { op, name, data }: Operation): void {
  const file = files.get(name);
  const waiting = pending.get(name);
  files.delete(name);
  pending.delete(name);
  if (op === "u") return;
  const target = data.toString();
  if (file) files.set(target, file);
  if (waiting) pending.set(target, waiting);
}

function readLog(log: string, folder: string): Operation[] {
  const bytes = readFileSync(log);
  const relative = (path: string): string => path.slice(folder.length + 1);
  const operations: Operation[] = [];
  for (let at = 0; at + 15 <= bytes.length; ) {
    const op = String.fromCharCode(bytes[at] ?? 0) as Operation["op"];
    const nameEnd = at + 15 + bytes.readUInt16LE(at + 1);
    const offset = Number(bytes.readBigInt64LE(at + 3));
    const end = nameEnd + bytes.readUInt32LE(at + 11);
    const name = relative(bytes.toString("latin1", at + 15, nameEnd));
    const data = bytes.subarray(nameEnd, end);
    operations.push({ op, name, offset, data: op === "r" ? Buffer.from(relative(data.toString("latin1"))) : data });
    at = end;
  }
  return operations;
}

/** 0 <= n < 1; mulberry32. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
