import { parentPort } from "node:worker_threads";
import { DeviceMemories } from "../../../src/agent/device-memory.ts";
import { guardWorker } from "../../../src/lib/thread/guard.ts";
import { serveSessions } from "../../../src/threads/session/serve.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
guardWorker(parentPort, { goesOn: true });
serveSessions(parentPort, {
  drivers: { far: { inWorker: true, driver: () => import("./driver.ts") } },
  memories: new DeviceMemories(),
  onStopped: () => process.exit(0),
});
