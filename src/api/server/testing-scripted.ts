import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TlsOptions } from "node:tls";
import { onTestFinished } from "vitest";
import { COLLECTOR, MACHINE } from "./testing.ts";

/** A server that answers as it is told; `requests` are what it was asked, `keys` what it was shown. */
export async function scripted(
  answer: (request: IncomingMessage, response: ServerResponse, path: string) => void,
  tls?: Pick<TlsOptions, "key" | "cert" | "ca" | "requestCert" | "rejectUnauthorized">,
) {
  const requests: string[] = [];
  const keys: (string | undefined)[] = [];
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const path = request.url ?? "";
    requests.push(`${request.method} ${path}`);
    keys.push(request.headers.authorization);
    request.resume();
    answer(request, response, path);
  };
  const server = tls ? createTlsServer(tls, serve) : createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `${tls ? "https" : "http"}://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, keys };
}

export const json = (response: ServerResponse, value: unknown, status = 200): void =>
  void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
export const page = (data: unknown[], next_cursor: string | null = null) => ({ data, metadata: { next_cursor } });
export const source = (n: number, rest: object = {}) => ({
  uuid: `${String(n).padStart(8, "0")}-0000-4000-8000-000000000000`,
  type: "modbus_tcp",
  readout_limit: null,
  readout_interval: 1,
  name: `source ${n}`,
  collector: COLLECTOR,
  manufacturer: null,
  device_model: null,
  note: null,
  machine: MACHINE,
  details: { type: "modbus_tcp", host: "127.0.0.1" },
  ...rest,
});
export const plainPlatform =
  (sources: (response: ServerResponse, path: string, request: IncomingMessage) => void) =>
  (request: IncomingMessage, response: ServerResponse, path: string): void => {
    if (path.startsWith("/api/v2/data-sources")) sources(response, path, request);
    else if (path.startsWith("/api/v2/data-sinks")) json(response, page([]));
    else json(response, { detail: "no such path" }, 404);
  };
