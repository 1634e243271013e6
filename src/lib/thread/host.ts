import { type ResourceLimits, type TransferListItem, Worker } from "node:worker_threads";
import { formatDuration } from "../../base/duration.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import { FREE_YOUNG_MIB, heaps, YOUNG_MIB } from "../heap.ts";
import { budgetLog } from "../log-budget.ts";
import { isLogMessage, type LogMessage, type LogOrigin } from "./log.ts";
import { isWorkerNotice, type WorkerNotice } from "./notice.ts";
import { printedWords } from "./printed.ts";
import { ChildWorker, type ProcessLimits } from "./process.ts";

/** What is used of a `Worker` of node:worker_threads, so that a process can be one. */
export interface RunningWorker extends Pick<Worker, "stdout" | "stderr"> {
  postMessage(message: unknown, transfer?: readonly TransferListItem[]): void;
  terminate(): Promise<number>;
  // biome-ignore lint/suspicious/noExplicitAny: as Node has it
  on(event: "message", listener: (message: any) => void): unknown;
  on(event: "messageerror", listener: (error: Error) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "exit", listener: (code: number) => void): unknown;
  once(event: "exit", listener: () => void): unknown;
}

export interface SupervisedWorkerOptions<In> {
  readonly entry: URL;
  /** For the log and the thread's name. */
  readonly name: string;
  readonly workerData: unknown;
  /** All but log lines and notices, which the supervisor takes. */
  readonly onMessage: (message: In) => void;
  /** Each start, before anything else is posted to it. */
  readonly onOnline?: (worker: RunningWorker) => void;
  /** Each death that was not asked for. */
  readonly onExit?: (cause: string) => void;
  /** True: the worker has said why it ends: whoever has heard it reports it, and the log says no more of the death. Asked before onExit. */
  readonly hasSaidWhy?: () => boolean;
  readonly log: Log;
  /** The log for lines with an origin; undefined: `log`. */
  readonly logOf?: (origin: LogOrigin) => Log | undefined;
  readonly execArgv?: readonly string[];
  /** Bounds of its heap: the worker that reaches them dies alone. Absent: Node's own. */
  readonly resourceLimits?: ResourceLimits;
  /**
   * It makes so much that dies young that a heap kept small would cost it a multiple of its CPU: from its first start on the heaps of the
   * whole process grow as Node lets them by itself (bin/runtime-flags.sh).
   */
  readonly needsHeap?: boolean;
  /** It runs in a process of its own, with memory of its own, and nothing can be transferred to it. Absent: in a thread. */
  readonly process?: ProcessLimits;
  /** What asks the worker to end; default `{ type: "stop" }`. */
  readonly stopMessage?: unknown;
  /** Wait before the first restart; doubles up to maxRestartDelayMs. Default 100. */
  readonly minRestartDelayMs?: number;
  /** Default 5000. */
  readonly maxRestartDelayMs?: number;
  /** A life of this length makes the next wait the first one again. Default 30 000. */
  readonly healthyAfterMs?: number;
}

const MIN_RESTART_DELAY_MS = 100;
const MAX_RESTART_DELAY_MS = 5000;
const HEALTHY_AFTER_MS = 30_000;
/** Of what a worker did not catch, and of what libraries print in it. */
const NOTICES_PER_MINUTE = 60;

/**
 * Runs a worker, a thread or a process, and starts it again whenever it dies. Its log lines, what it does not catch and what libraries print in it go to the
 * log, the last two in a budget, and nothing of it to this process's own output.
 */
export class SupervisedWorker<In> {
  readonly #options: SupervisedWorkerOptions<In>;
  readonly #name: string;
  readonly #log: Log;
  /** For what the worker does not catch and what libraries print. */
  readonly #noticeLog: Log;
  readonly #minRestartDelayMs: number;
  #workerData: unknown;
  #worker: RunningWorker | undefined;
  /** Why the worker ends, if it is known before it has. */
  #failure: string | undefined;
  #startedMs = 0;
  #restartTimer: NodeJS.Timeout | undefined;
  #restartDelayMs: number;
  #stopping: Promise<void> | undefined;

  constructor(options: SupervisedWorkerOptions<In>) {
    this.#options = options;
    this.#name = options.name;
    this.#log = options.log;
    this.#workerData = options.workerData;
    this.#noticeLog = budgetLog(options.log, { linesPerMinute: NOTICES_PER_MINUTE, of: `the ${options.name} worker` });
    this.#minRestartDelayMs = options.minRestartDelayMs ?? MIN_RESTART_DELAY_MS;
    this.#restartDelayMs = this.#minRestartDelayMs;
    this.#start();
  }

  /** False: no worker runs at this moment, and the message is gone. */
  post(message: unknown, transfer: readonly TransferListItem[] = []): boolean {
    this.#worker?.postMessage(message, transfer);
    return this.#worker !== undefined;
  }

  /** What the worker is started with the next time. */
  setWorkerData(workerData: unknown): void {
    this.#workerData = workerData;
  }

  /** Asks the worker to end, ends it after `timeoutMs`, and starts it no more. Idempotent, never throws. */
  stop(timeoutMs: number): Promise<void> {
    clearTimeout(this.#restartTimer);
    this.#stopping ??= this.#worker ? this.#end(this.#worker, timeoutMs) : Promise.resolve();
    return this.#stopping;
  }

  #start(): void {
    this.#restartTimer = undefined;
    this.#startedMs = performance.now();
    this.#failure = undefined;
    if (this.#options.needsHeap) heaps.free();
    let worker: RunningWorker;
    try {
      worker = this.#newWorker();
    } catch (error) {
      this.#died(messageOf(error));
      return;
    }
    this.#worker = worker;
    for (const output of [worker.stdout, worker.stderr]) output.on("data", (data: Buffer) => this.#onOutput(data));
    worker.on("message", (message: In | WorkerNotice | LogMessage) => this.#onMessage(message));
    worker.on("messageerror", (error) => this.#log.error({ worker: this.#name, err: error }, "a worker's message could not be read"));
    worker.on("error", (error) => {
      this.#failure = messageOf(error);
    });
    worker.on("exit", (code) => this.#onExit(code));
    this.#options.onOnline?.(worker);
  }

  #newWorker(): RunningWorker {
    const { entry, name, execArgv, needsHeap, resourceLimits, process } = this.#options;
    if (process) return new ChildWorker({ entry, name, workerData: this.#workerData, ...process });
    return new Worker(entry, {
      name,
      workerData: this.#workerData,
      stdout: true,
      stderr: true,
      ...(execArgv && { execArgv: [...execArgv] }),
      resourceLimits: { maxYoungGenerationSizeMb: needsHeap ? FREE_YOUNG_MIB : YOUNG_MIB, ...resourceLimits },
    });
  }

  #onMessage(message: In | WorkerNotice | LogMessage): void {
    try {
      if (isWorkerNotice(message)) this.#onNotice(message);
      else if (isLogMessage(message)) this.#onLine(message);
      else this.#options.onMessage(message);
    } catch (error) {
      this.#log.error({ worker: this.#name, err: error }, "a worker's message could not be handled");
    }
  }

  #onLine({ level, fields, message, origin }: LogMessage): void {
    const log = (origin && this.#options.logOf?.(origin)) ?? this.#log;
    log[level](fields, message);
  }

  #onNotice(notice: WorkerNotice): void {
    if (notice.type === "worker_printed") {
      this.#noticeLog.debug({ worker: this.#name, words: notice.words }, "a library printed");
      return;
    }
    const { ends, message, stack } = notice;
    if (ends) this.#failure ??= message;
    const fields = { worker: this.#name, condition: "internal_error", detail: message, ...(stack !== undefined && { stack }) };
    const outcome = ends ? "which ends" : "which continues";
    this.#noticeLog.error(fields, `uncaught error in the ${this.#name} worker, ${outcome}`);
  }

  #onOutput(data: Buffer): void {
    this.#noticeLog.debug({ worker: this.#name, words: printedWords([data.toString()]) }, "a worker wrote to its output");
  }

  #onExit(code: number): void {
    this.#worker = undefined;
    if (!this.#stopping) this.#died(this.#failure ?? `it ended with code ${code}`);
  }

  #died(cause: string): void {
    const { healthyAfterMs = HEALTHY_AFTER_MS, maxRestartDelayMs = MAX_RESTART_DELAY_MS } = this.#options;
    if (performance.now() - this.#startedMs >= healthyAfterMs) this.#restartDelayMs = this.#minRestartDelayMs;
    const delayMs = this.#restartDelayMs;
    this.#log[this.#options.hasSaidWhy?.() ? "debug" : "error"](
      { worker: this.#name, cause, restartInMs: delayMs },
      `the ${this.#name} worker died and is started again in ${formatDuration(delayMs)}`,
    );
    this.#restartTimer = setTimeout(() => this.#start(), delayMs);
    this.#restartDelayMs = Math.min(delayMs * 2, maxRestartDelayMs);
    this.#options.onExit?.(cause);
  }

  #end(worker: RunningWorker, timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#log.warn({ worker: this.#name, timeoutMs }, `the ${this.#name} worker did not end when asked and is ended`);
        void worker.terminate();
      }, timeoutMs);
      worker.once("exit", () => {
        clearTimeout(timer);
        resolve();
      });
      worker.postMessage(this.#options.stopMessage ?? { type: "stop" });
    });
  }
}
