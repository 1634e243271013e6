import { existsSync } from "node:fs";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { guardWorker } from "../../lib/thread/guard.ts";
import { loadAssets } from "../../service/page/assets.ts";
import type { PageWorkerData } from "../../service/page/messages.ts";
import { runPage } from "../../service/page/run-page.ts";

if (!parentPort) throw new Error("this is a worker's entry; start it with new Worker()");
// A page that was left half-way is asked for again, and the state comes again from the service.
guardWorker(parentPort, { goesOn: false });
void start(parentPort);

async function start(port: MessagePort): Promise<void> {
  const bundled = new URL("../../page/", import.meta.url);
  await runPage(port, { ...(workerData as PageWorkerData), assets: loadAssets(existsSync(bundled) ? bundled : await ofSources()) });
}

/** A collector that runs from its sources bundles the console at its start; a package has it. */
async function ofSources(): Promise<URL> {
  const bundler = new URL("../../../package/console.ts", import.meta.url).href;
  const { consoleOfSources } = (await import(bundler)) as { consoleOfSources(): Promise<URL> };
  return consoleOfSources();
}
