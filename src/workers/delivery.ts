import { parentPort, workerData } from "node:worker_threads";
import { createPki, keepRenewed } from "../os/pki/pki.ts";
import { listenRefusal, permitOf } from "../os/policy.ts";
import { runDelivery } from "../sinks/delivery.ts";
import type { DeliveryWorkerData } from "../sinks/messages.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
const { policy, leftBehindDir, pki } = workerData as DeliveryWorkerData;
runDelivery(parentPort, {
  permit: permitOf(policy, "sinks"),
  listenRefusal: (at) => listenRefusal(policy, at),
  ...(pki && {
    openPki: (log) => {
      const opened = createPki({ ...pki, log });
      keepRenewed(opened, log);
      return opened;
    },
  }),
  leftBehindDir,
});
