import { parentPort, workerData } from "node:worker_threads";
import type { ApiTaskData, ApiWorkerData } from "../api/messages.ts";
import { runApiTask } from "../api/server/tasks.ts";
import { runApiWorker } from "../api/server/worker.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
const data = workerData as ApiWorkerData | ApiTaskData;
await ("task" in data ? runApiTask(parentPort, data) : runApiWorker(parentPort, data));
