import { parentPort, workerData } from "node:worker_threads";
import { DRIVERS } from "../../../drivers/index.ts";
import { DeviceMemories } from "../../agent/device-memory.ts";
import { guardWorker } from "../../lib/thread/guard.ts";
import { openRenewedPki } from "../../os/pki/pki.ts";
import type { SessionWorkerData } from "./messages.ts";
import { serveSessions } from "./serve.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
// One device's bytes must not cost the others their sessions: libraries throw in handlers of their sockets.
guardWorker(parentPort, { goesOn: true });
const { pki } = workerData as SessionWorkerData;
serveSessions(parentPort, {
  drivers: DRIVERS,
  memories: new DeviceMemories(),
  ...(pki && { pki: (log) => openRenewedPki(pki, log) }),
  // What a library still has open must not keep the thread.
  onStopped: () => process.exit(0),
});
