import { parentPort } from "node:worker_threads";
import { runDelivery } from "../sinks/delivery.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
runDelivery(parentPort);
