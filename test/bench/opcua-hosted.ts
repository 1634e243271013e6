import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { silentLog } from "../../src/model/context.ts";
import { createPki } from "../../src/os/pki/pki.ts";
import kind from "../../src/sinks/opcua/sink.ts";
import { freePort } from "../support/free-port.ts";
import { layoutsOf, nodeIdsOf, readoutOf, reportOf, sinkSpec } from "./opcua-plant.ts";

/**
 * The hosted server by itself, fed as the delivery feeds it. Arguments: how many variables, all written every so many ms. Started as a
 * child process: says where it is, and its CPU time when asked.
 */
const [count = 0, everyMs = 0] = process.argv.slice(2).map(Number);

const dir = mkdtempSync(path.join(os.tmpdir(), "bench-opcua-"));
process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
process.once("SIGTERM", () => process.exit());
const ctx = {
  signal: new AbortController().signal,
  log: silentLog,
  pki: createPki({ dir, installation: "00000000-0000-4000-8000-00000000000b" }),
};
const port = await freePort();
const { uuid, name, details, settings, secrets } = sinkSpec(port);
const layouts = layoutsOf(count);
const sink = await kind.open({ uuid, name, details: kind.details.parse(details), settings: kind.settings.parse(settings), secrets }, ctx);
await sink.describe?.(
  layouts.map((layout) => reportOf(layout, everyMs)),
  ctx,
);
let round = 0;
let written = 0;
let busy = false;
setInterval(async () => {
  if (busy) return;
  busy = true;
  round++;
  for (const layout of layouts) {
    await sink.write({ id: String(round), layout, readouts: [readoutOf(layout, round)], backlog: false }, ctx);
    written += layout.variables.length;
  }
  busy = false;
}, everyMs);
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpuUs: user + system, written });
});
process.send?.({ url: `opc.tcp://127.0.0.1:${port}`, nodeIds: nodeIdsOf(layouts) });
