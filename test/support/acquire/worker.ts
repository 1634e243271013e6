import { parentPort } from "node:worker_threads";
import { runAcquire } from "../../../src/acquire/worker.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
const acquire = runAcquire(parentPort, {
  drivers: { far: { inWorker: true, driver: () => import("./driver.ts") } },
  onStopped: () => process.exit(0),
});
process.on("uncaughtException", (error) => {
  if (!acquire.uncaught(error)) process.exit(1);
});
