import { parentPort, workerData } from "node:worker_threads";
import { runStore, type StoreOptions } from "../buffer/store.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
runStore(parentPort, workerData as StoreOptions);
