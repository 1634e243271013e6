import { mkdir, readdir, rename, stat, unlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { createYielder } from "../base/timer.ts";
import { captureFileName } from "../lib/capture/file-name.ts";
import { CaptureWriter } from "../lib/capture/write.ts";
import { hasCode } from "../lib/files.ts";
import type { Clock } from "../model/clock.ts";
import type { Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import type { FailureCapture } from "../model/service-status.ts";
import type { SourceFrames } from "../model/wire.ts";

export const capturesFolder = (stateDir: string): string => path.join(stateDir, "captures");

export interface FailureCaptureOptions {
  readonly folder: string;
  /** Of all files; the oldest go. 0: none is written. */
  readonly maxBytes: number;
  /** Of the collector. */
  readonly version: string;
  readonly clock: Pick<Clock, "epochMs" | "monotonicMs">;
  readonly log: Log;
  /** Bytes that are free where the folder is; undefined: it cannot be asked. */
  freeBytes(): Promise<number | undefined>;
}

const MAX_FILES = 100;
/** Below this the disk is left alone. */
const LEAST_FREE_BYTES = 128 * 1024 * 1024;
/** A source that fails for the same reason again has another file only after this. */
const SAME_REASON_MS = 3_600_000;
/** A switch that dies makes many sources fail at once. */
const [FILES_PER_MINUTE, MINUTE_MS] = [10, 60_000];
const NAME = /^(.*)-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.pcapng$/;

/** Why a source failed when its frames were looked at. */
interface Looked {
  readonly why: string;
  /** Monotonic. */
  readonly atMs: number;
}

/** Writes what a source exchanged last when it begins to fail, in bounded number and size. Nothing here throws or waits for the disk. */
export class FailureCaptures {
  readonly #options: FailureCaptureOptions;
  readonly #looked = new Map<string, Looked>();
  readonly #last = new Map<string, FailureCapture>();
  /** Of earlier runs, by the beginning of their names. */
  readonly #found = new Map<string, FailureCapture>();
  #recentMs: readonly number[] = [];
  #left = 0;
  #complaint = "";
  /** Never rejects. */
  #work: Promise<unknown>;

  constructor(options: FailureCaptureOptions) {
    this.#options = options;
    this.#work = this.#guarded(() => this.#lookAround());
  }

  /** A source has begun to fail, or fails for another reason; `look` gives what it exchanged last. */
  failed(uuid: string, why: string, look: () => SourceFrames | undefined): void {
    const { maxBytes, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    const last = this.#looked.get(uuid);
    if (maxBytes === 0 || (last?.why === why && nowMs - last.atMs < SAME_REASON_MS)) return;
    this.#recentMs = this.#recentMs.filter((ms) => nowMs - ms < MINUTE_MS);
    if (this.#recentMs.length >= FILES_PER_MINUTE) {
      this.#left++;
      return;
    }
    const frames = look();
    // An attempt to connect alone shows no more than the reason does.
    if (!frames?.record.events.some(({ kind }) => kind === "data")) return;
    this.#recentMs = [...this.#recentMs, nowMs];
    this.#looked.set(uuid, { why, atMs: nowMs });
    const epochMs = clock.epochMs();
    this.#work = this.#work.then(async () => {
      if (!(await this.#guarded(() => this.#write(frames, epochMs)))) this.#looked.delete(uuid);
    });
  }

  /** The last file of a source; undefined: it has none. */
  of(uuid: string, name: string): FailureCapture | undefined {
    return this.#last.get(uuid) ?? this.#found.get(plainName(name));
  }

  /** Sources that do not run any more are forgotten; their files stay. */
  keep(uuids: ReadonlySet<string>): void {
    for (const known of [this.#last, this.#looked]) for (const uuid of known.keys()) if (!uuids.has(uuid)) known.delete(uuid);
  }

  /** When nothing is being written. */
  async idle(): Promise<void> {
    await this.#work;
  }

  /** True: it went well. */
  async #guarded(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      this.#complaint = "";
      return true;
    } catch (error) {
      const words = messageOf(error);
      if (words !== this.#complaint) this.#options.log.warn({}, `the capture of a failed data source was not written: ${words}`);
      this.#complaint = words;
      return false;
    }
  }

  async #write(frames: SourceFrames, epochMs: number): Promise<void> {
    const { folder, maxBytes, log, freeBytes } = this.#options;
    const free = await freeBytes();
    if (free !== undefined && free < LEAST_FREE_BYTES)
      throw new Error(`less than ${LEAST_FREE_BYTES / 2 ** 20} MiB are free in ${path.dirname(folder)}`);
    const bytes = await this.#bytesOf(frames);
    if (bytes.length > maxBytes) throw new Error(`it has ${bytes.length} bytes, more than captures.files_bytes`);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const file = path.join(folder, captureFileName(frames.name, epochMs));
    await writeFile(`${file}.new`, bytes, { mode: 0o600 });
    await rename(`${file}.new`, file);
    this.#last.set(frames.uuid, { file, at: new Date(epochMs).toISOString() });
    log.info({ source: frames.name, file, left: this.#left }, "wrote what this data source exchanged before it failed");
    this.#left = 0;
    await this.#prune();
  }

  async #bytesOf({ name, type, standardPort, record }: SourceFrames): Promise<Buffer> {
    const yieldToEventLoop = createYielder();
    const writer = new CaptureWriter({ version: this.#options.version, source: name, type, standardPort });
    const parts = [writer.head()];
    for (const event of record.events) {
      parts.push(writer.take(event, record.peers.get(event.connection)));
      await yieldToEventLoop();
    }
    return Buffer.concat(parts);
  }

  async #prune(): Promise<void> {
    const { folder, maxBytes } = this.#options;
    const files = (await this.#files()).toSorted((one, other) => other.at.localeCompare(one.at));
    let bytes = 0;
    for (const [place, { file, size }] of files.entries()) {
      bytes += size;
      if (bytes <= maxBytes && place < MAX_FILES) continue;
      await unlink(path.join(folder, file));
      this.#forget(path.join(folder, file));
    }
  }

  #forget(file: string): void {
    for (const [uuid, last] of this.#last) if (last.file === file) this.#last.delete(uuid);
    for (const [name, found] of this.#found) if (found.file === file) this.#found.delete(name);
  }

  /** What earlier runs have written, and what they left half. */
  async #lookAround(): Promise<void> {
    const { folder } = this.#options;
    for (const { file, name, at } of await this.#files()) {
      const known = this.#found.get(name);
      if (!known || known.at < at) this.#found.set(name, { file: path.join(folder, file), at });
    }
    for (const file of await namesIn(folder)) if (file.endsWith(".pcapng.new")) await unlink(path.join(folder, file));
    await this.#prune();
  }

  async #files(): Promise<readonly { readonly file: string; readonly name: string; readonly at: string; readonly size: number }[]> {
    const { folder } = this.#options;
    const files: { file: string; name: string; at: string; size: number }[] = [];
    for (const file of await namesIn(folder)) {
      const [, name, ...parts] = NAME.exec(file) ?? [];
      const [year, month, day, hour, minute, second] = parts;
      if (name === undefined) continue;
      const at = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
      files.push({ file, name, at, size: (await stat(path.join(folder, file))).size });
    }
    return files;
  }
}

const plainName = (source: string): string => NAME.exec(captureFileName(source, 0))?.[1] ?? "";

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}
