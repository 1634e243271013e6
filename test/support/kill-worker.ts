import { setTimeout as delay } from "node:timers/promises";
import type { CollectorProcess } from "./collector-process.ts";

const WITHIN_MS = 10_000;

/**
 * Ends one worker thread of a running collector from outside, at once and without its consent: the operating system has no signal for a
 * single thread, so Node's own debugger makes the thread exit. The collector has to be started with INSPECTABLE in its environment.
 * `by` is the JavaScript that ends it. Throws an Error where there is no such worker.
 */
export async function killWorker(
  collector: CollectorProcess,
  name: "store" | "delivery" | "api",
  by: string = "process.exit(9)",
): Promise<void> {
  const socket = new WebSocket(await debuggerUrl(collector));
  const send = (id: number, method: string, params: object) => socket.send(JSON.stringify({ id, method, params }));
  const seen: string[] = [];
  const killed = new Promise<void>((done, fail) => {
    socket.addEventListener("error", () => fail(new Error("the debugger's connection failed")));
    socket.addEventListener("open", () => send(1, "NodeWorker.enable", { waitForDebuggerOnStart: false }));
    let session: string | undefined;
    socket.addEventListener("message", ({ data }) => {
      const { method, params } = JSON.parse(String(data));
      if (method === "NodeWorker.attachedToWorker") {
        const { title } = params.workerInfo as { readonly title: string };
        seen.push(title);
        if (session !== undefined || !title.endsWith(` ${name}`)) return;
        session = params.sessionId;
        const exit = { id: 1, method: "Runtime.evaluate", params: { expression: by } };
        send(2, "NodeWorker.sendMessageToWorker", { sessionId: session, message: JSON.stringify(exit) });
      } else if (method === "NodeWorker.detachedFromWorker" && params.sessionId === session) done();
    });
  });
  const late = delay(WITHIN_MS, undefined, { ref: false }).then(() => {
    throw new Error(`no worker ${name} ended within ${WITHIN_MS} ms; there are: ${seen.join(", ")}`);
  });
  try {
    await Promise.race([killed, late]);
  } finally {
    socket.close();
  }
}

/** Fills the heap with 600 MiB at most: where no limit ends the worker before, the machine of the test is spared. */
export const FILL_HEAP = "globalThis.kept = []; for (let mib = 0; mib < 600; mib++) kept.push(Array(131_072).fill(mib))";

/** Opens the debugger on a port that is free, for several collectors on one machine: no signal opens it. */
export const INSPECTABLE = { NODE_OPTIONS: "--inspect=127.0.0.1:0" };

async function debuggerUrl({ log }: CollectorProcess): Promise<string> {
  const endMs = performance.now() + WITHIN_MS;
  for (;;) {
    const url = log.map((line) => /Debugger listening on (ws:\S+)/.exec(line)?.[1]).findLast((one) => one !== undefined);
    if (url !== undefined) return url;
    if (performance.now() > endMs) throw new Error(`the debugger does not listen after ${WITHIN_MS} ms`);
    await delay(20);
  }
}
