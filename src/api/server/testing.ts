import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import type { Log } from "../../model/context.ts";
import { type ApiServer, type ApiServerOptions, startApiServer } from "./server.ts";
import { type AnswerCheck, answerCheck } from "./testing-openapi.ts";

export const COLLECTOR = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01";
export const MACHINE = "0b6f3f0e-0f4f-4b3c-8b0f-5a1c2d3e4f50";

/** A log that keeps its lines as text, for looking at what was said. */
export function recordingLog(): Log & { readonly lines: string[] } {
  const lines: string[] = [];
  const write = (level: string) => (fields: object, message: string) => {
    lines.push(
      `${level} ${message} ${JSON.stringify(fields, (_, value: unknown) => (value instanceof Error ? { message: value.message, stack: value.stack } : value))}`,
    );
  };
  return { lines, debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "collector-api-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface TestServer {
  readonly server: ApiServer;
  readonly folder: string;
  readonly log: ReturnType<typeof recordingLog>;
  readonly adminKey: string;
  readonly collectorKey: string;
  /**
   * Sends JSON with the admin's key, unless `headers` say another. The path is below `/api`. Every answer is held to the description that
   * the server gives of itself.
   */
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Sent>;
}

export interface Sent {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // Tests reach into answers; the schemas are what holds their shape.
  readonly body: Json;
}

/** JSON of any shape, for assertions. */
export interface Json {
  readonly [key: string]: Json;
  readonly [index: number]: Json;
}

/** The description is the same for every server of one build. */
let check: AnswerCheck | undefined;

/** The API on a free port with a database in `folder` (a fresh one unless given); closed when the test ends. */
export async function startTestServer(
  folder: string = temporaryFolder(),
  collector: string = COLLECTOR,
  options: Partial<ApiServerOptions> = {},
): Promise<TestServer> {
  const log = recordingLog();
  const server = await startApiServer({
    databaseFile: join(folder, "api", "configuration.db"),
    keysDir: join(folder, "keys"),
    listen: "127.0.0.1:0",
    socketFile: join(folder, "api.sock"),
    values: { maxBytes: 2 ** 30, maxAgeMs: 10 * 365 * 86_400_000 },
    collector,
    readoutIntervalUnit: "seconds",
    publishIntervalUnit: "seconds",
    version: "0.0.0-test",
    log,
    ...options,
  });
  onTestFinished(() => server.close());
  const adminKey = readFileSync(server.keyFiles.admin, "utf8").trim();
  const describe = async (): Promise<AnswerCheck> => {
    const response = await fetch(`${server.url}/api/openapi.json`, { headers: { authorization: adminKey } });
    return answerCheck((await response.json()) as Parameters<typeof answerCheck>[0]);
  };
  return {
    server,
    folder,
    log,
    adminKey,
    collectorKey: readFileSync(server.keyFiles.collector, "utf8").trim(),
    async send(method, path, body, headers = {}) {
      const response = await fetch(`${server.url}/api${path}`, {
        method,
        headers: { authorization: adminKey, ...(body !== undefined && { "content-type": "application/json" }), ...headers },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
        signal: AbortSignal.timeout(10_000),
      });
      const text = await response.text();
      check ??= await describe();
      expect(check(method, path, response.status, text, response.headers)).toBeUndefined();
      return { status: response.status, headers: response.headers, text, body: text === "" ? {} : (JSON.parse(text) as Json) };
    },
  };
}

/** A creation request for a Modbus data source. */
export const modbusSource = (name = "press-1", collector = COLLECTOR): Record<string, unknown> => ({
  name,
  collector,
  machine: MACHINE,
  details: { type: "modbus_tcp", host: "127.0.0.1", port: 1502 },
});

/** A creation request for an MQTT data sink. */
export const mqttSink = (name: string | null = "broker", collector = COLLECTOR): Record<string, unknown> => ({
  name,
  collector,
  details: { type: "mqtt", host: "127.0.0.1", topic: "plant/{source}" },
});
