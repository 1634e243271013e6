import { closeSync, openSync, writeSync } from "node:fs";
import path from "node:path";
import { formatDuration, parseDuration } from "../../base/duration.ts";
import { sleep } from "../../base/timer.ts";
import { stateDirIn } from "../../configuration/settings-file.ts";
import { captureFileName } from "../../lib/capture/file-name.ts";
import { CaptureWriter } from "../../lib/capture/write.ts";
import { hasCode } from "../../lib/files.ts";
import { messageOf } from "../../model/failure.ts";
import type { WirePeer } from "../../model/wire.ts";
import { type PackedFrames, unpackEvents } from "../../service/frames-answer.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import { answer } from "../answer.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { withService } from "../service/known.ts";
import { ServiceError, tellService } from "../service/local-client.ts";

/** The command line's options, as typed. */
export interface CaptureOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly for?: string;
  readonly out?: string;
}

const LOOK_EVERY_MS = 250;
const TELL_EVERY_MS = 5000;
const LONGEST_MS = 3_600_000;
/** Of a file: whoever needs more has another tool. */
const MAX_BYTES = 256 * 1024 * 1024;

/** `collector capture SOURCE`: what the running service and a device exchanged last, and with --for what comes. Throws UsageError. */
export function capture(source: string, options: CaptureOptions, io: CommandIo): Promise<ExitCode> {
  const forMs = forMsOf(options.for);
  if (options.out === "-" && options.json) throw new UsageError("--json: the capture itself goes to the terminal with --out -");
  if (options.out === "-" && io.stdout.isTTY) throw new UsageError("--out -: a capture is not text; pipe it, as in --out - | tshark -r -");
  return withService(io, async () => {
    const first = await ask(source, -1, options.config, io);
    if (first.events.length === 0 && forMs === 0) {
      complain(io, `nothing has passed between the collector and ${first.name} yet; --for 30s waits for what comes`);
      return EXIT.sourceFailed;
    }
    const taking = new Taking(first, options.out, io);
    try {
      await taking.take(first);
      if (forMs > 0) await follow(taking, forMs, options.config, io);
    } finally {
      taking.end();
    }
    taking.report(options);
    return EXIT.good;
  });
}

function forMsOf(text: string | undefined): number {
  if (text === undefined) return 0;
  const ms = parseDuration(text);
  if (ms === undefined || ms <= 0 || ms > LONGEST_MS) throw new UsageError(`--for ${text}: expected a duration such as 30s, at most 1h`);
  return ms;
}

async function ask(source: string, after: number, config: string | undefined, io: CommandIo): Promise<PackedFrames> {
  try {
    return (await tellService(localSocketPath(stateDirIn(config)), "/capture", { source, after }, io.signal)) as PackedFrames;
  } catch (error) {
    if (error instanceof ServiceError && error.refusal !== undefined) throw new UsageError(error.refusal);
    throw error;
  }
}

async function follow(taking: Taking, forMs: number, config: string | undefined, io: CommandIo): Promise<void> {
  const untilMs = performance.now() + forMs;
  let toldMs = performance.now();
  while (await sleep(Math.max(0, Math.min(LOOK_EVERY_MS, untilMs - performance.now())), io.signal)) {
    try {
      await taking.take(await ask(taking.uuid, taking.last, config, io));
    } catch (error) {
      if (io.signal.aborted) return;
      // What has come so far is a whole file.
      complain(io, `the capture ends here: ${messageOf(error)}`);
      return;
    }
    const leftMs = untilMs - performance.now();
    if (leftMs <= 0) return;
    if (taking.isFull) {
      complain(io, `the capture ends here: ${MAX_BYTES / 2 ** 20} MiB are the most that a file may have`);
      return;
    }
    if (performance.now() - toldMs < TELL_EVERY_MS) continue;
    toldMs = performance.now();
    complain(io, `${taking.events} frames and events, ${taking.bytes} bytes; ${formatDuration(Math.ceil(leftMs / 1000) * 1000)} left`);
  }
}

/** A capture that is being written. */
class Taking {
  readonly uuid: string;
  readonly #name: string;
  readonly #type: string;
  #writer: CaptureWriter;
  readonly #io: CommandIo;
  readonly #newWriter: () => CaptureWriter;
  /** Undefined: it goes to the terminal. */
  readonly #file: string | undefined;
  readonly #handle: number | undefined;
  readonly #peers = new Map<number, WirePeer>();
  readonly #span = { from: Number.POSITIVE_INFINITY, to: Number.NEGATIVE_INFINITY };
  events = 0;
  bytes = 0;
  /** Number of the last event. */
  last = -1;
  #dropped = 0;
  #withheld = 0;

  constructor({ uuid, name, type, standardPort }: PackedFrames, out: string | undefined, io: CommandIo) {
    this.uuid = uuid;
    this.#name = name;
    this.#type = type;
    this.#io = io;
    this.#newWriter = () => new CaptureWriter({ version: io.version, source: name, type, standardPort });
    this.#writer = this.#newWriter();
    this.#file = out === "-" ? undefined : path.resolve(out ?? captureFileName(name, Date.now()));
    this.#handle = this.#file === undefined ? undefined : open(this.#file);
    this.#put(this.#writer.head());
  }

  get isFull(): boolean {
    return this.bytes >= MAX_BYTES;
  }

  async take(answered: PackedFrames): Promise<void> {
    for (const [connection, peer] of answered.peers) this.#peers.set(connection, peer);
    if (answered.restarted) {
      complain(this.#io, `${this.#name} was started again with another configuration`);
      this.#writer = this.#newWriter();
    }
    // What was dropped before the first look is no loss of this capture.
    if (this.last >= 0) this.#dropped += answered.dropped;
    for (const event of unpackEvents(answered)) {
      this.last = event.number;
      this.events++;
      if (event.withheld !== undefined) this.#withheld++;
      this.#span.from = Math.min(this.#span.from, event.wallMs);
      this.#span.to = Math.max(this.#span.to, event.wallMs);
      this.#put(this.#writer.take(event, this.#peers.get(event.connection)));
    }
    if (this.#handle === undefined) await this.#io.stdout.room(this.#io.signal);
  }

  end(): void {
    if (this.#handle !== undefined) closeSync(this.#handle);
  }

  report(options: CaptureOptions): void {
    const { events, bytes } = this;
    const iso = (ms: number): string | null => (Number.isFinite(ms) ? new Date(ms).toISOString() : null);
    const [from, to] = [iso(this.#span.from), iso(this.#span.to)];
    const of = { source: this.#name, uuid: this.uuid, type: this.#type, file: this.#file ?? null };
    if (this.#dropped > 0)
      complain(
        this.#io,
        `${this.#dropped} frames came faster than they were fetched and are missing; captures.source_bytes gives more room`,
      );
    if (this.#file === undefined) return;
    const words = [
      `${this.#file}: ${events} frames and events of ${this.#name}, ${bytes} bytes${from === null ? "" : `, ${from} to ${to}`}`,
      ...(this.#withheld > 0 ? [`${this.#withheld} frames that log in or are encrypted have no content.`] : []),
      `Look at it: wireshark ${path.basename(this.#file)}, or tshark -r ${path.basename(this.#file)}`,
    ];
    answer(
      this.#io,
      options,
      { ...of, events, bytes, from, to, missing: this.#dropped, withheld: this.#withheld },
      `${words.join("\n")}\n`,
    );
  }

  #put(bytes: Buffer): void {
    this.bytes += bytes.length;
    if (this.#handle === undefined) this.#io.stdout.verbatim(bytes);
    else writeSync(this.#handle, bytes);
  }
}

/** Of its owner alone: what passed may be nobody else's business. */
function open(file: string): number {
  try {
    return openSync(file, "wx", 0o600);
  } catch (error) {
    if (hasCode(error, "EEXIST")) throw new UsageError(`${file} is there already; name another file with --out`);
    throw new UsageError(`${file} cannot be written: ${messageOf(error)}`);
  }
}
