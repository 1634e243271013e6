import { messageOf } from "../../model/failure.ts";

/** What any worker posts in addition to its own messages; `SupervisedWorker` takes it. */
export type WorkerNotice =
  /** Nobody caught it. `ends`: the worker ends and is started again. */
  | { readonly type: "worker_uncaught"; readonly ends: boolean; readonly message: string; readonly stack?: string }
  /** A library printed it. */
  | { readonly type: "worker_printed"; readonly words: string };

export const isWorkerNotice = (message: unknown): message is WorkerNotice =>
  typeof message === "object" &&
  message !== null &&
  "type" in message &&
  (message.type === "worker_uncaught" || message.type === "worker_printed");

/** One thing that throws now and then costs nobody else the worker; a storm means that its state is lost. */
const MAX_UNCAUGHT = 10;
const WITHIN_MS = 60_000;
const MAX_STACK = 4000;

/**
 * Makes of what nobody caught the notice for the other thread. A worker that `goesOn` does so up to ten times in a minute and ends at the
 * next; any other ends at the first.
 */
export function createUncaught(goesOn: boolean): (error: unknown) => WorkerNotice {
  let atMs: number[] = [];
  return (error) => {
    const now = performance.now();
    atMs = [...atMs.filter((at) => now - at < WITHIN_MS), now].slice(-MAX_UNCAUGHT - 1);
    const stack = error instanceof Error ? error.stack : undefined;
    return {
      type: "worker_uncaught",
      ends: !goesOn || atMs.length > MAX_UNCAUGHT,
      message: messageOf(error),
      ...(stack !== undefined && { stack: stack.slice(0, MAX_STACK) }),
    };
  };
}
