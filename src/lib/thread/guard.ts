import { silentLog } from "../../model/context.ts";
import { budgetLog } from "../log-budget.ts";
import { createUncaught, type WorkerNotice } from "./notice.ts";
import type { Port } from "./port.ts";
import { capturePrinted } from "./printed.ts";

/** Lines that a library may print in a minute, of a thread. */
const LINES_PER_MINUTE = 60;

export interface GuardOptions {
  /**
   * What nobody caught is logged, and the worker goes on (up to ten times a minute): right where libraries throw in handlers of the sockets
   * of one device or client, which must not trouble the others. Otherwise it ends and is started again: right where a half-done step could
   * leave what is stored or counted wrong.
   */
  readonly goesOn: boolean;
}

/** For each worker's entry: what nobody catches and what libraries print goes to the log of the thread that started it. */
export function guardWorker(port: Pick<Port, "postMessage">, { goesOn }: GuardOptions): void {
  const post = (notice: WorkerNotice): void => port.postMessage(notice);
  const noticeOf = createUncaught(goesOn);
  const uncaught = (error: unknown): void => {
    const notice = noticeOf(error);
    post(notice);
    if (notice.type === "worker_uncaught" && notice.ends) process.exit(1);
  };
  process.on("uncaughtException", uncaught);
  process.on("unhandledRejection", uncaught);

  const postPrinted = (fields: object, words: string): void =>
    post({ type: "worker_printed", words: "lines" in fields ? `${String(fields.lines)} ${words}` : words });
  const printed = budgetLog({ ...silentLog, debug: postPrinted }, { linesPerMinute: LINES_PER_MINUTE, of: "libraries" });
  capturePrinted((words) => printed.debug({}, words));
}
