import { runDelivery } from "../../delivery/engine.ts";
import type { DeliveryWorkerData } from "../../delivery/messages.ts";
import { PolicyInForce } from "../../lib/policy.ts";
import { type ChildEnd, openChildPort } from "../../lib/thread/child.ts";
import { guardWorker } from "../../lib/thread/guard.ts";
import { openRenewedPki } from "../../os/pki/pki.ts";
import { unrelayed } from "../delivery/store-relay.ts";

// A process of its own: what clients of a server make it do costs neither the sources nor the buffer their memory.
if (!process.send) throw new Error("this is a process's entry; the collector starts it with a channel");
// Whoever started it ends it. A terminal sends its signals to both.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
process.once("disconnect", () => process.exit());
void openChildPort(process).then(serve);

function serve({ port, workerData }: ChildEnd): void {
  const { policy, memoryDir, pki } = workerData as DeliveryWorkerData;
  // One client must not cost the others their sessions.
  guardWorker(port, { goesOn: true });
  const inForce = new PolicyInForce(policy);
  runDelivery(unrelayed(port), {
    permit: inForce.permitSink,
    listenRefusal: inForce.listenRefusal,
    usePolicy: (changed) => inForce.use(changed),
    ...(pki && { openPki: (log) => openRenewedPki(pki, log) }),
    memoryDir,
  });
}
