import { parentPort, workerData } from "node:worker_threads";
import { guardWorker } from "../../lib/thread/guard.ts";
import { runStore, type StoreOptions } from "./store.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
// A commit that was left half-way is none; what was not answered is posted again to the next store.
guardWorker(parentPort, { goesOn: false });
runStore(parentPort, workerData as StoreOptions);
