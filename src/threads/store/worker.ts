import { parentPort, workerData } from "node:worker_threads";
import type { StoreWorkerData } from "../../buffer/messages.ts";
import { guardWorker } from "../../lib/thread/guard.ts";
import { serveStore } from "./serve.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
// A commit that fails half-way changes nothing; what was not answered is posted again to the next worker.
guardWorker(parentPort, { goesOn: false });
serveStore(parentPort, workerData as StoreWorkerData);
