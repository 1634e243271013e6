import { parentPort, workerData } from "node:worker_threads";
import { DRIVERS } from "../../../drivers/index.ts";
import type { ApiTaskAnswer, ApiTaskData, ApiWorkerData } from "../../api/embedded.ts";
import { runApiTask } from "../../api/server/tasks.ts";
import { runApiWorker } from "../../api/server/worker.ts";
import { guardWorker } from "../../lib/thread/guard.ts";
import { messageOf } from "../../model/failure.ts";
import { SINKS } from "../../sinks/index.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
const port = parentPort;
const data = workerData as ApiWorkerData | ApiTaskData;
if ("task" in data) {
  // Whoever typed the command waits for one answer.
  const fail = (error: unknown): void => {
    port.postMessage({ type: "failed", message: messageOf(error), isInput: false } satisfies ApiTaskAnswer);
    process.exit(1);
  };
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
  runApiTask(port, data).catch(fail);
} else {
  // A request that was left half-way changes nothing, and its client asks again.
  guardWorker(port, { goesOn: false });
  void runApiWorker(port, data, { sources: DRIVERS, sinks: SINKS });
}
