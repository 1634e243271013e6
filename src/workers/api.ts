import { parentPort, workerData } from "node:worker_threads";
import type { ApiWorkerData } from "../api/messages.ts";
import { runApiWorker } from "../api/server/worker.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
await runApiWorker(parentPort, workerData as ApiWorkerData);
