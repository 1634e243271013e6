import { parentPort, workerData } from "node:worker_threads";
import { runDelivery } from "../../delivery/engine.ts";
import type { DeliveryWorkerData } from "../../delivery/messages.ts";
import { PolicyInForce } from "../../lib/policy.ts";
import { guardWorker } from "../../lib/thread/guard.ts";
import { createNameLookup } from "../../os/name-lookup.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
const { policy, memoryDir } = workerData as DeliveryWorkerData;
// What is not acknowledged comes again to the next worker, and a pump that stopped half-way would never deliver it.
guardWorker(parentPort, { goesOn: false });
const inForce = new PolicyInForce(policy);
runDelivery(parentPort, {
  lookUp: createNameLookup(),
  permit: inForce.permitSink,
  listenRefusal: inForce.listenRefusal,
  usePolicy: (changed) => inForce.use(changed),
  memoryDir,
});
