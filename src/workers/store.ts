import { parentPort, workerData } from "node:worker_threads";
import { runStore, type StoreOptions } from "../buffer/store.ts";
import { guardWorker } from "./guard.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
// A commit that was left half-way is none; what was not answered is posted again to the next store.
guardWorker(parentPort, { goesOn: false });
runStore(parentPort, workerData as StoreOptions);
