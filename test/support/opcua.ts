import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { AnySession, DriverContext } from "../../drivers/driver.ts";
import driver from "../../drivers/opcua/driver.ts";
import { DeviceMemories } from "../../src/agent/device-memory.ts";
import { type Log, silentLog } from "../../src/model/context.ts";
import type { OpcuaDetails } from "../../src/model/details.ts";
import type { Reading } from "../../src/model/value.ts";
import { createPki, type OpenPki } from "../../src/os/pki/pki.ts";
import { prepareAll } from "../conformance/support/read-all.ts";

export interface TestPki extends OpenPki {
  readonly dir: string;
  remove(): void;
}

/** A PKI folder of its own. */
export function testPki(now?: () => number): TestPki {
  const dir = mkdtempSync(path.join(tmpdir(), "opcua-driver-"));
  const pki = createPki({ dir, installation: "7b5bf1d6-7a0e-4d32-9f7c-6a1d0a3b6f11", ...(now && { now }) });
  return { ...pki, dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

export interface TestContext {
  readonly ms?: number;
  readonly answerMs?: number;
  readonly pki?: DriverContext["pki"];
  readonly log?: Log;
  readonly tap?: DriverContext["tap"];
  readonly signal?: AbortSignal;
  readonly resolve?: DriverContext["resolve"];
}

export const context = ({ ms = 20_000, answerMs = ms, pki, log = silentLog, tap, signal, resolve }: TestContext = {}): DriverContext => ({
  signal: signal ?? AbortSignal.timeout(ms),
  log,
  timeouts: { nameMs: ms, connectMs: ms, answerMs },
  ...(pki && { pki }),
  ...(tap && { tap }),
  ...(resolve && { resolve }),
});

/** Details as the API would hold them; `change` over a server without security on this port. */
export const detailsOf = (port: number, change: Partial<OpcuaDetails> = {}): OpcuaDetails => ({
  type: "opcua",
  host: "127.0.0.1",
  port,
  endpoint_url: `opc.tcp://127.0.0.1:${port}`,
  security_settings: { security_mode: "None", endpoint_security_policy: "None", token_security_policy: "None" },
  user_identity: { type: "Anonymous" },
  ...change,
});

export interface ConnectOptions {
  readonly settings?: Record<string, unknown>;
  readonly secrets?: Readonly<Record<string, string>>;
}

export const connect = (
  details: OpcuaDetails,
  ctx: DriverContext,
  { settings = {}, secrets = {} }: ConnectOptions = {},
): Promise<AnySession> =>
  driver.connect(
    { details, settings: driver.settings.parse(settings), secrets },
    { device: memories.of(`${details.host}:${details.port}`), ...ctx },
  );

/** As the agent keeps them. */
const memories = new DeviceMemories();

/** Prepares, plans and reads once; the readings in the order of the addresses. */
export async function readTexts(session: AnySession, texts: readonly string[], ctx: DriverContext): Promise<readonly Reading[]> {
  const settings = driver.settings.parse({});
  const points = texts.map((text, index) => ({ index, ...driver.parseAddress(text, undefined, settings) }));
  const { ready, refused } = await prepareAll(session, points, ctx);
  const found = new Map<number, Reading>(refused);
  for (const request of driver.plan(ready, session.limits))
    for (const [i, reading] of (await session.read(request, ctx)).entries()) found.set(request.points[i]?.index ?? -1, reading);
  return texts.map((_, index) => found.get(index) ?? { quality: "bad", fault: "no_answer", detail: "it was not read" });
}
