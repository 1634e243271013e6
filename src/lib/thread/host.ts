import { type ResourceLimits, type TransferListItem, Worker } from "node:worker_threads";
import type { Log } from "../../model/context.ts";
import { formatDuration } from "../../model/duration.ts";
import { messageOf } from "../../model/failure.ts";
import { FREE_YOUNG_MIB, heaps } from "../heap.ts";
import { budgetLog } from "../log-budget.ts";
import { isWorkerNotice, type WorkerNotice } from "./notice.ts";
import { printedWords } from "./printed.ts";

export interface SupervisedWorkerOptions<In> {
  readonly entry: URL;
  /** For the log and the thread's name. */
  readonly name: string;
  readonly workerData: unknown;
  readonly onMessage: (message: In) => void;
  /** Each start, before anything else is posted to it. */
  readonly onOnline?: (worker: Worker) => void;
  /** Each death that was not asked for. */
  readonly onExit?: (cause: string) => void;
  readonly log: Log;
  readonly execArgv?: readonly string[];
  /** Bounds of its heap: the worker that reaches them dies alone. Absent: Node's own. */
  readonly resourceLimits?: ResourceLimits;
  /**
   * It makes so much that dies young that a heap kept small would cost it a multiple of its CPU: from its first start on the heaps of the
   * whole process grow as Node lets them by itself (bin/runtime-flags.sh).
   */
  readonly needsHeap?: boolean;
  /** What asks the worker to end; default `{ type: "stop" }`. */
  readonly stopMessage?: unknown;
  /** Wait before the first restart; doubles up to maxRestartDelayMs. Default 100. */
  readonly minRestartDelayMs?: number;
  /** Default 5000. */
  readonly maxRestartDelayMs?: number;
  /** A life of this length makes the next wait the first one again. Default 30 000. */
  readonly healthyAfterMs?: number;
}

export interface SupervisedWorker {
  /** False: there is no worker at this moment, and the message is gone. */
  post(message: unknown, transfer?: readonly TransferListItem[]): boolean;
  /** Asks the worker to end, ends it after `timeoutMs`, and starts it no more. Idempotent, never throws. */
  stop(timeoutMs: number): Promise<void>;
}

const MIN_RESTART_DELAY_MS = 100;
const MAX_RESTART_DELAY_MS = 5000;
const HEALTHY_AFTER_MS = 30_000;
/** Of what a worker did not catch, and of what libraries print in it. */
const NOTICES_PER_MINUTE = 60;

/**
 * Runs a worker thread and starts it again whenever it dies. What the worker does not catch or prints goes to the log, in a budget, and
 * nothing of it to this process's own output: see `WorkerNotice`.
 */
export function superviseWorker<In>(options: SupervisedWorkerOptions<In>): SupervisedWorker {
  const { name, log, minRestartDelayMs = MIN_RESTART_DELAY_MS, maxRestartDelayMs = MAX_RESTART_DELAY_MS } = options;
  const { healthyAfterMs = HEALTHY_AFTER_MS, stopMessage = { type: "stop" } } = options;
  let worker: Worker | undefined;
  let restartTimer: NodeJS.Timeout | undefined;
  let delayMs = minRestartDelayMs;
  let stopping: Promise<void> | undefined;
  const noticed = budgetLog(log, { linesPerMinute: NOTICES_PER_MINUTE, of: `the ${name} worker` });

  const notice = (told: WorkerNotice): void => {
    if (told.type === "worker_printed") {
      noticed.debug({ worker: name, words: told.words }, "a library printed");
      return;
    }
    const fields = {
      worker: name,
      condition: "internal_error",
      detail: told.message,
      ...(told.stack !== undefined && { stack: told.stack }),
    };
    noticed.error(
      fields,
      told.ends
        ? `nobody caught an error in the ${name} worker, which ends`
        : `nobody caught an error in the ${name} worker, which goes on`,
    );
  };

  const start = (): void => {
    restartTimer = undefined;
    const startedMs = performance.now();
    let failure: unknown;
    let started: Worker;
    if (options.needsHeap) heaps.free();
    try {
      started = new Worker(options.entry, {
        name,
        workerData: options.workerData,
        stdout: true,
        stderr: true,
        ...(options.execArgv && { execArgv: [...options.execArgv] }),
        resourceLimits: { ...(options.needsHeap && { maxYoungGenerationSizeMb: FREE_YOUNG_MIB }), ...options.resourceLimits },
      });
    } catch (error) {
      died(messageOf(error), startedMs);
      return;
    }
    worker = started;
    for (const output of [started.stdout, started.stderr])
      output.on("data", (data: Buffer) =>
        noticed.debug({ worker: name, words: printedWords([data.toString()]) }, "a worker wrote to its output"),
      );
    started.on("message", (message: In | WorkerNotice) => {
      if (isWorkerNotice(message)) {
        if (message.type === "worker_uncaught" && message.ends) failure ??= message.message;
        notice(message);
        return;
      }
      try {
        options.onMessage(message);
      } catch (error) {
        log.error({ worker: name, err: error }, "a worker's message could not be handled");
      }
    });
    started.on("messageerror", (error) => log.error({ worker: name, err: error }, "a worker's message could not be read"));
    started.on("error", (error) => {
      failure = error;
    });
    started.on("exit", (code) => {
      if (worker === started) worker = undefined;
      if (!stopping) died(failure === undefined ? `it ended by itself with code ${code}` : messageOf(failure), startedMs);
    });
    options.onOnline?.(started);
  };

  const died = (cause: string, startedMs: number): void => {
    if (performance.now() - startedMs >= healthyAfterMs) delayMs = minRestartDelayMs;
    log.error({ worker: name, cause, restartInMs: delayMs }, `the ${name} worker died and is started again in ${formatDuration(delayMs)}`);
    restartTimer = setTimeout(start, delayMs);
    delayMs = Math.min(delayMs * 2, maxRestartDelayMs);
    options.onExit?.(cause);
  };

  const end = (running: Worker, timeoutMs: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => {
        log.warn({ worker: name, timeoutMs }, `the ${name} worker did not end when asked and is ended`);
        void running.terminate();
      }, timeoutMs);
      running.once("exit", () => {
        clearTimeout(timer);
        resolve();
      });
      running.postMessage(stopMessage);
    });

  start();
  return {
    post(message, transfer = []) {
      worker?.postMessage(message, transfer);
      return worker !== undefined;
    },
    stop(timeoutMs) {
      clearTimeout(restartTimer);
      stopping ??= worker ? end(worker, timeoutMs) : Promise.resolve();
      return stopping;
    },
  };
}
