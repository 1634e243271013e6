import type { MessagePort } from "node:worker_threads";
import { logOver } from "../../lib/thread/log.ts";
import { messageOf } from "../../model/failure.ts";
import type { ApiWorkerData, FromApi, ToApi } from "../embedded.ts";
import type { CreatedExamples } from "./openapi-examples.ts";
import { startApiServer } from "./server.ts";

/** The embedded API in a thread of its own: starts it, says where it listens or why it does not, stops it on `stop`. Never rejects. */
export async function runApiWorker(port: MessagePort, data: ApiWorkerData, created: CreatedExamples): Promise<void> {
  const post = (message: FromApi): void => port.postMessage(message);
  const log = logOver(post);

  const stopped = new Promise<void>((resolve) => {
    port.on("message", (message: ToApi) => {
      if (message.type === "stop") resolve();
    });
  });
  try {
    const server = await startApiServer({
      ...data,
      created,
      log,
      onRefusedKeys: (count) => post({ type: "refused_keys", count }),
      onPortTrouble: (message) => post({ type: "port_trouble", message }),
      onChanged: (change) => post({ type: "changed", change }),
    });
    post({ type: "listening", url: server.url, keyFiles: server.keyFiles });
    await stopped;
    await server.close();
    post({ type: "stopped" });
  } catch (error) {
    post({ type: "failed", message: messageOf(error) });
  }
  port.close();
}
