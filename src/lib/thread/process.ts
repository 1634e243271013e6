import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { launchWords } from "../launch.ts";
import type { FromChild, ToChild } from "./child.ts";

/** Of a worker that is a process. */
export interface ProcessLimits {
  /** Memory that it may have for itself, MiB: the kernel gives no more, and it dies of that alone. */
  readonly memoryMiB: number;
  /** Of its heap, MiB: what is beyond it is collected before, or dies with words. */
  readonly heapMiB: number;
  /** Absent: this process's own. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface ChildWorkerOptions extends ProcessLimits {
  readonly entry: URL;
  readonly name: string;
  readonly workerData: unknown;
  /** Default 5000. */
  readonly heartbeatMs?: number;
}

/** Much is made of each value that dies young (bin/runtime-flags.sh). */
const YOUNG = "--scavenger-max-new-space-capacity-mb=8";
const HEARTBEAT_MS = 5000;
/** Counted, not timed: a machine that was asleep must not take its processes for hung. */
const MAX_SILENT_HEARTBEATS = 6;
/** Messages that wait for the process to take them. */
const MAX_UNSENT = 2000;
/** Characters of what it wrote last that are looked at for why it ended. */
const LAST_WORDS = 4000;
const NO_MEMORY = /out of memory|allocation failed|bad_alloc|Cannot allocate memory/i;

interface Events {
  message: [message: unknown];
  messageerror: [error: Error];
  error: [error: Error];
  exit: [code: number];
}

/** A worker in a process of its own, as a `Worker` of node:worker_threads to whoever supervises it. Ends with the process that started it. */
export class ChildWorker extends EventEmitter<Events> {
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly #memoryMiB: number;
  readonly #child: ChildProcess;
  readonly #heartbeatMs: number;
  readonly #heartbeat: NodeJS.Timeout;
  #silentHeartbeats = 0;
  #unsent = 0;
  #lastWords = "";
  /** Why it is ended from here. */
  #failure: string | undefined;

  /** Throws Error where no process can be started. */
  constructor({ entry, name, workerData, memoryMiB, heapMiB, env, heartbeatMs = HEARTBEAT_MS }: ChildWorkerOptions) {
    super();
    this.#memoryMiB = memoryMiB;
    this.#heartbeatMs = heartbeatMs;
    const limitKiB = memoryMiB * 1024 + reservedKiB();
    const command = [process.execPath, YOUNG, `--max-old-space-size=${heapMiB}`, fileURLToPath(entry)];
    const child = spawn(...launchWords({ name, memoryKiB: limitKiB, command }), {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      serialization: "advanced",
      ...(env && { env: { ...env } }),
    });
    if (!child.stdout || !child.stderr) throw new Error(`the ${name} process has no output`);
    this.#child = child;
    this.stdout = child.stdout;
    this.stderr = child.stderr;
    for (const output of [child.stdout, child.stderr])
      output.on("data", (data: Buffer) => {
        this.#lastWords = (this.#lastWords + data.toString("latin1")).slice(-LAST_WORDS);
      });
    child.on("message", (message) => this.#onMessage(message));
    child.once("error", (error) => this.#onError(error));
    child.once("close", (code, signal) => this.#onClose(code, signal));
    this.#heartbeat = setInterval(() => this.#beat(), heartbeatMs);
    this.#heartbeat.unref();
    this.#send({ type: "process_begin", workerData });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Nothing can be transferred to another process. */
  postMessage(message: unknown): void {
    this.#send({ type: "process_message", message });
  }

  /** Ends it at once. */
  async terminate(): Promise<number> {
    this.#child.kill("SIGKILL");
    return 0;
  }

  #send(message: ToChild): void {
    const child = this.#child;
    if (!child.connected) return;
    if (++this.#unsent > MAX_UNSENT) {
      this.#fail("it takes nothing of what it is sent");
      return;
    }
    child.send(message as object, () => {
      this.#unsent--;
    });
  }

  #onMessage(message: unknown): void {
    this.#silentHeartbeats = 0;
    const { type, message: own } = message as FromChild & { readonly message?: unknown };
    if (type === "process_message") this.emit("message", own);
  }

  #beat(): void {
    if (this.#silentHeartbeats++ < MAX_SILENT_HEARTBEATS) this.#send({ type: "process_ping" });
    else this.#fail(`it answered nothing for ${(this.#heartbeatMs * MAX_SILENT_HEARTBEATS) / 1000} s`);
  }

  #fail(why: string): void {
    this.#failure ??= why;
    this.#child.kill("SIGKILL");
  }

  #onError(error: Error): void {
    this.emit("error", error);
    if (this.#child.pid === undefined) this.#onClose(1, null);
  }

  #onClose(code: number | null, signal: NodeJS.Signals | null): void {
    clearInterval(this.#heartbeat);
    const why = this.#failure ?? this.#causeOf(code, signal);
    if (why !== undefined) this.emit("error", new Error(why));
    this.emit("exit", code ?? 1);
  }

  #causeOf(code: number | null, signal: NodeJS.Signals | null): string | undefined {
    if (code === 0) return undefined;
    if (NO_MEMORY.test(this.#lastWords)) return `it needed more than the ${this.#memoryMiB} MiB of memory that it may have`;
    if (signal === "SIGKILL") return "it was killed, as the kernel does where memory is short";
    return signal === null ? undefined : `it was ended by ${signal}`;
  }
}

/** What a process that is started may know of the environment: where things are, and how Node and the allocator work; no secret's place. */
const PASSED = /^(PATH|HOME|LANG|LC_\w+|TZ|TMPDIR|MALLOC_\w+|NODE_\w+)$/;

/** Pure. */
export const childEnv = (env: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(env).flatMap(([name, value]) => (PASSED.test(name) && value !== undefined ? [[name, value]] : [])));

/**
 * What Node reserves of the kernel's account of data before it has used any of it: the room for machine code. Of this process, which runs
 * the same Node. 0 where it cannot be seen.
 */
function reservedKiB(): number {
  try {
    const sizes = [...readFileSync("/proc/self/maps", "latin1").matchAll(/^([\da-f]+)-([\da-f]+) rwxp/gm)].map(
      ([, from = "0", to = "0"]) => (Number.parseInt(to, 16) - Number.parseInt(from, 16)) / 1024,
    );
    return Math.max(0, ...sizes);
  } catch {
    return 0;
  }
}
