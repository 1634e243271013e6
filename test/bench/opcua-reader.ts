import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { OPCUACertificateManager } from "node-opcua-certificate-manager";
import { AttributeIds, MessageSecurityMode, OPCUAClient, resolveNodeId, SecurityPolicy } from "node-opcua-client";
import type { AnyDriver, DriverContext, Point, Request } from "../../drivers/driver.ts";
import opcua from "../../drivers/opcua/driver.ts";
import { makeCertificate, writeCertificate } from "../../drivers/opcua/simulator-certificates.ts";
import { silentLog } from "../../src/model/context.ts";
import { createPki } from "../../src/os/pki/pki.ts";
import { SessionHost } from "../../src/threads/session/host.ts";
import { remoteDriver } from "../../src/threads/session/remote-drivers.ts";
import { latenessIn } from "./lateness.ts";

/**
 * Reads all variables of the bench's machine, in a process of its own: what one way of reading leaves on the heap and in the compiler's
 * memory is not another's. Arguments: `driver`, `worker` or `bare`; the security mode, `None` or `SignAndEncrypt`. Told the machine once, then `{reads}` answers with the CPU time that
 * they took, all threads, and `{latenessMs}` reads without a pause for so long and answers with how late this thread's timers were.
 */
export interface BenchMachine {
  readonly port: number;
  readonly url: string;
  readonly nodeIds: readonly string[];
}
export type ReaderOrder = BenchMachine | { readonly reads: number } | { readonly latenessMs: number };
export interface ReaderAnswer {
  readonly cpuUs: number;
  readonly ms: number;
  readonly values: number;
}

const [, , way = "bare", mode = "None"] = process.argv;
const isSecure = mode === "SignAndEncrypt";
const dir = mkdtempSync(path.join(os.tmpdir(), "bench-opcua-"));
process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
process.once("SIGTERM", () => process.exit());
const pki = { dir: path.join(dir, "pki"), installation: "7b5bf1d6-7a0e-4d32-9f7c-6a1d0a3b6f11" };

const context: DriverContext = {
  pki: createPki(pki),
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 10_000 },
};
/** Reads everything once; how many values were good. */
type Read = () => Promise<number>;

async function openOurs(driver: AnyDriver, { port, url, nodeIds }: BenchMachine): Promise<Read> {
  const settings = driver.settings.parse({ trust: "first_use" });
  const policy = isSecure ? "Basic256Sha256" : "None";
  const details = driver.details.parse({
    type: "opcua",
    host: "127.0.0.1",
    port,
    endpoint_url: url,
    security_settings: { security_mode: mode, endpoint_security_policy: policy, token_security_policy: policy },
    user_identity: { type: "Anonymous" },
  });
  const session = await driver.connect({ details, settings, secrets: {} }, context);
  const points = nodeIds.map((text, index): Point => ({ index, ...driver.parseAddress(text, undefined, settings) }));
  const ready: Point[] = [];
  for await (const batch of session.prepare?.(points, context) ?? [points])
    for (const one of batch) if (!("refusal" in one)) ready.push("point" in one ? { ...one.point, address: one.address } : one);
  const requests: readonly Request[] = driver.plan(ready, session.limits);
  return async () => {
    let good = 0;
    for (const request of requests) for (const { quality } of await session.read(request, context)) if (quality === "good") good++;
    return good;
  };
}

/** What a person would write with node-opcua: the same nodes in one Read, their values taken. */
async function openBare({ url, nodeIds }: BenchMachine): Promise<Read> {
  const applicationUri = "urn:bench:bare";
  const files = await writeCertificate(dir, "bare", await makeCertificate({ applicationUri }));
  const clientCertificateManager = new OPCUACertificateManager({
    rootFolder: path.join(dir, "bare"),
    automaticallyAcceptUnknownCertificate: true,
    disableFileWatchers: true,
  });
  await clientCertificateManager.initialize();
  const client = OPCUAClient.create({
    ...files,
    applicationUri,
    clientCertificateManager,
    endpointMustExist: false,
    securityMode: isSecure ? MessageSecurityMode.SignAndEncrypt : MessageSecurityMode.None,
    securityPolicy: isSecure ? SecurityPolicy.Basic256Sha256 : SecurityPolicy.None,
    connectionStrategy: { maxRetry: 0 },
  });
  await client.connect(url);
  const session = await client.createSession();
  const nodes = nodeIds.map((nodeId) => ({ nodeId: resolveNodeId(nodeId), attributeId: AttributeIds.Value }));
  return async () => {
    let good = 0;
    for (const { statusCode, value } of await session.read(nodes)) if (statusCode.isGood() && typeof value.value === "number") good++;
    return good;
  };
}

function open(machine: BenchMachine): Promise<Read> {
  if (way === "bare") return openBare(machine);
  if (way === "driver") return openOurs(opcua, machine);
  const sessions = new SessionHost({
    entry: new URL("../../src/threads/session/worker.ts", import.meta.url),
    workerData: { pki },
    log: silentLog,
  });
  return openOurs(remoteDriver(opcua, sessions), machine);
}

let read: Read = async () => 0;
const answer = async (order: ReaderOrder): Promise<unknown> => {
  if ("nodeIds" in order) {
    read = await open(order);
    return "open";
  }
  if ("latenessMs" in order) {
    let reading = true;
    const delay = latenessIn(order.latenessMs).finally(() => {
      reading = false;
    });
    while (reading) await read();
    return await delay;
  }
  const [cpu, began] = [process.cpuUsage(), performance.now()];
  let values = 0;
  for (let i = 0; i < order.reads; i++) values += await read();
  const { user, system } = process.cpuUsage(cpu);
  return { cpuUs: user + system, ms: performance.now() - began, values } satisfies ReaderAnswer;
};
process.on("message", async (order: ReaderOrder) => process.send?.(await answer(order)));
process.send?.("started");
