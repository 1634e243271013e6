import driver from "../../../drivers/vendor_gateway/driver.ts";
import { type ErrorFields, GatewayError, type ItemErrorCode, type RequestErrorCode } from "../../../gateway/errors.ts";
import { Gateway, type GatewaySecurity } from "../../../gateway/server.ts";
import { type SimulatedItem, SimulatedPlant, SimulatedServer } from "../../../gateway/simulated-plant.ts";
import { driverContext } from "../../support/driver-context.ts";
import { freePort } from "../../support/free-port.ts";
import { connectGateway, type GatewayAsk, gatewayPoints } from "../../support/gateway.ts";
import { greeting, type Script, scriptedGateway } from "../../support/scripted-gateway.ts";
import { type FailureRow, Steps } from "../support/failures.ts";

const ANSWER_MS = 500;
const KEY = "00112233445566778899aabbccddeeff";

interface Plant {
  readonly port: number;
  readonly server: SimulatedServer;
  readonly item: SimulatedItem;
}

/** What a row may use; all of it ends with the row. */
export interface Bench {
  start(security?: GatewaySecurity, maxConnections?: number): Promise<Plant>;
  later(work: () => unknown): void;
}

export type Row = FailureRow<Bench, "network" | "security" | "gateway" | "variable">;

export function createBench(): Bench & { close(): Promise<void> } {
  const { later, close } = new Steps();
  return {
    later,
    async start(security, maxConnections = 16) {
      const item: SimulatedItem = { item: "Press.Force", type: "float64", value: 812.5 };
      const plant = new SimulatedPlant();
      const server = plant.add({ protocol: "OPC_DA", server_name: "Plant.OpcDa.1" }, new SimulatedServer("Plant", [item], () => 0));
      const gateway = await Gateway.start({ backend: plant, maxConnections, ...(security && { security }) });
      later(() => gateway.close());
      return { port: gateway.port, server, item };
    },
    close,
  };
}

/** Connects, looks up and reads one variable. */
async function readOnce(bench: Bench, port: number, ask: GatewayAsk = {}, variable = "Press.Force"): Promise<unknown> {
  const ctx = driverContext({ timeouts: { nameMs: 1000, connectMs: 1000, answerMs: ANSWER_MS } });
  const session = await connectGateway(port, { ...ask, ctx });
  bench.later(() => session.close());
  for await (const [found] of session.prepare?.(gatewayPoints([variable]), ctx) ?? []) {
    if (!found) break;
    if ("refusal" in found) throw found.refusal;
    const [request] = driver.plan([{ index: 0, address: found.address, type: found.type }], session.limits);
    if (!request) break;
    const [reading] = await session.read(request, ctx);
    return reading;
  }
  throw new Error("nothing is planned");
}

const scripted =
  (script: Script, ask: GatewayAsk = {}) =>
  async (bench: Bench) => {
    const gateway = await scriptedGateway(script);
    bench.later(() => gateway.close());
    return readOnce(bench, gateway.port, ask);
  };

const breach = (what: string, detail: RegExp, script: Script): Row => ({
  group: "network",
  what,
  reason: "UNKNOWN",
  condition: "protocol_violation",
  detail,
  run: scripted(script),
});
const network: readonly Row[] = [
  {
    group: "network",
    what: "nothing listens on the port",
    reason: "CONNECTION_REFUSED",
    detail: /^connect ECONNREFUSED/,
    run: async (bench) => readOnce(bench, await freePort()),
  },
  {
    group: "network",
    what: "the gateway does not answer",
    reason: "TIMEOUT",
    detail: /^no answer within 500 ms to hello$/,
    run: scripted(() => undefined),
  },
  {
    group: "network",
    what: "the gateway does not answer a look-up",
    reason: "TIMEOUT",
    detail: /^no answer within 500 ms to the look-up of Press\.Force$/,
    run: scripted((line) => greeting(line)),
  },
  {
    group: "network",
    what: "the gateway closes the connection on a request",
    reason: "CONNECTION_CLOSED",
    detail: /closed the connection/,
    run: scripted((line, _nth, socket) => {
      if (line.request === "resolve") socket.end();
      return greeting(line);
    }),
  },
  {
    group: "network",
    what: "the gateway resets the connection on a request",
    reason: "CONNECTION_RESET",
    detail: /ECONNRESET/,
    run: scripted((line, _nth, socket) => {
      if (line.request === "resolve") socket.resetAndDestroy();
      return greeting(line);
    }),
  },
  breach("another protocol answers", /"HTTP\/1\.1 400 Bad" where a line of JSON begins/, () => "HTTP/1.1 400 Bad Request\r\n\r"),
  breach("the gateway expects TLS, and security is `none`", /answers with TLS: set security/, () =>
    Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46]),
  ),
  breach("the gateway chooses a version that was not offered", /it chose version 7, which was not offered/, (line) =>
    greeting(line)?.replace('"version":1', '"version":7'),
  ),
  breach("the gateway answers with a line that is not JSON", /a line that is not a JSON object in UTF-8/, (line) =>
    line.request === "hello" ? greeting(line) : "{",
  ),
  breach("the gateway's line does not end", /a line of more than 1048576 bytes/, (line) =>
    line.request === "hello" ? greeting(line) : Buffer.alloc(1_100_000, 0x7b),
  ),
  {
    group: "network",
    what: "the gateway says that a line of the collector is not valid",
    reason: "VENDOR_GATEWAY_ERROR",
    detail: /refuses a line of the collector: bad_request/,
    run: scripted((line) => greeting(line) ?? '{"id":null,"error":{"code":"bad_request","message":"no JSON"}}'),
  },
];

const keyed = (what: string, condition: string, detail: RegExp, ask: GatewayAsk): Row => ({
  group: "security",
  what,
  reason: "UNKNOWN",
  condition,
  detail,
  run: async (bench) =>
    readOnce(bench, (await bench.start({ kind: "psk", identity: "collector", key: Buffer.from(KEY, "hex") })).port, ask),
});
const psk = { security: "psk" } as const;
const security: readonly Row[] = [
  keyed("the gateway has another key", "server_refuses", /alert decrypt error; .*the same key/, {
    local: psk,
    secret: KEY.replaceAll("0", "1"),
  }),
  keyed("the gateway has the key under another name", "server_refuses", /alert handshake failure; .*under the name press/, {
    local: { ...psk, psk_identity: "press" },
    secret: KEY,
  }),
  keyed("the key is not on this machine", "secret_missing", /key of the gateway is not on this machine/, { local: psk }),
  keyed("the key is not valid", "configuration_invalid", /32 to 128 hexadecimal digits/, { local: psk, secret: "secret" }),
  {
    group: "security",
    what: "security is psk, and the gateway has none",
    reason: "UNKNOWN",
    condition: "server_refuses",
    detail: /wrong version number; security is psk: has the gateway the same key/,
    run: async (bench) => readOnce(bench, (await bench.start()).port, { local: psk, secret: KEY }),
  },
];

const refused = (
  what: string,
  at: "open" | "resolve" | "read",
  code: RequestErrorCode,
  detail: RegExp,
  message = "",
  fields: ErrorFields = {},
): Row => ({
  group: "gateway",
  what,
  reason: "VENDOR_GATEWAY_ERROR",
  detail,
  run: async (bench) => {
    const { port, server } = await bench.start();
    server.trouble = (request) => (request === at ? new GatewayError(code, message, fields) : undefined);
    return readOnce(bench, port);
  },
});
const gateway: readonly Row[] = [
  {
    group: "gateway",
    what: "the gateway is older or newer than the collector",
    reason: "VENDOR_GATEWAY_ERROR",
    detail: /refuses hello: unsupported_version: .*; it speaks version 2, 3; the collector speaks version 1/,
    run: scripted((line) => JSON.stringify({ id: line.id, error: { code: "unsupported_version", message: "too old", versions: [2, 3] } })),
  },
  {
    group: "gateway",
    what: "the gateway has as many connections as it takes",
    reason: "VENDOR_GATEWAY_ERROR",
    detail: /too_many_connections: .*; close other clients/,
    run: async (bench) => readOnce(bench, (await bench.start(undefined, 0)).port),
  },
  {
    group: "gateway",
    what: "the gateway cannot read this protocol",
    reason: "VENDOR_GATEWAY_ERROR",
    detail: /cannot read PVI; it has "OPC_DA"/,
    run: scripted((line) => greeting(line), { target: { protocol: "PVI", path: "line" } }),
  },
  {
    group: "gateway",
    what: "protocol_details are of another protocol",
    reason: "UNKNOWN",
    condition: "configuration_invalid",
    detail: /protocol OTHER cannot be read/,
    run: async (bench) => readOnce(bench, 1, { target: { protocol: "OTHER" } }),
  },
  {
    group: "gateway",
    what: "the computer has no such server",
    reason: "VENDOR_GATEWAY_ERROR",
    detail: /unknown_server, 0x800401F3 CO_E_CLASSSTRING: .*; the gateway has "Plant\.OpcDa\.1"$/,
    run: async (bench) => readOnce(bench, (await bench.start()).port, { target: { protocol: "OPC_DA", server_name: "Plant.OpcDa.2" } }),
  },
  refused(
    "the server does not start",
    "open",
    "server_unavailable",
    /refuses the OPC DA server Plant\.OpcDa\.1: server_unavailable, 0x800706BA/,
    "",
    {
      native: "0x800706BA RPC_S_SERVER_UNAVAILABLE",
    },
  ),
  refused(
    "the server is lost while it is read",
    "read",
    "server_unavailable",
    /refuses Press\.Force: server_unavailable: .*the trouble is behind it/,
    "the connection was lost",
  ),
  {
    group: "gateway",
    what: "the server hangs, and the gateway does not",
    reason: "VENDOR_GATEWAY_ERROR",
    detail: /server_timeout: "the server gave no answer within 400 ms"; the gateway itself is well/,
    run: async (bench) => {
      const { port, server } = await bench.start();
      server.trouble = (request) => (request === "read" ? "silent" : undefined);
      return readOnce(bench, port);
    },
  },
  refused("the gateway's user may not use the server", "open", "access_denied", /access_denied, 0x80070005 .*rights in DCOM/, "", {
    native: "0x80070005 E_ACCESSDENIED",
  }),
  refused("the gateway has too much to do", "read", "busy", /refuses Press\.Force: busy/, "", { retryAfterMs: 2000 }),
  refused(
    "the gateway fails",
    "read",
    "internal_error",
    /refuses Press\.Force: internal_error: "index out of range"/,
    "index out of range",
  ),
  {
    group: "gateway",
    what: "the server has another project since the look-up",
    fault: "program_changed",
    scope: "program",
    detail: /stale_epoch: .*; items are looked up again/,
    run: async (bench) => {
      const { port, server } = await bench.start();
      server.trouble = (request) =>
        request === "read" ? new GatewayError("stale_epoch", "the project was loaded", { epoch: "2" }) : undefined;
      return readOnce(bench, port);
    },
  },
];

const itemRow = (what: string, code: ItemErrorCode, fault: string, native?: string): Row => ({
  group: "variable",
  what,
  fault,
  detail: new RegExp(`^the gateway answers ${code}`),
  run: async (bench) => {
    const { port, item } = await bench.start();
    item.error = { error: code, message: what, ...(native !== undefined && { native }) };
    return readOnce(bench, port);
  },
});
const held = (what: string, fault: string, detail: RegExp, change: (item: SimulatedItem) => void): Row => ({
  group: "variable",
  what,
  fault,
  detail,
  run: async (bench) => {
    const { port, item } = await bench.start();
    change(item);
    return readOnce(bench, port);
  },
});
const quality = (what: string, word: number, fault: string, detail: RegExp): Row =>
  held(what, fault, detail, (item) => {
    item.quality = word;
  });
const variable: readonly Row[] = [
  {
    group: "variable",
    what: "the server has no such item",
    fault: "not_found",
    scope: "points",
    detail: /not_found, 0xC0040007 OPC_E_UNKNOWNITEMID: "there is no item Press\.Nothing"/,
    run: async (bench) => readOnce(bench, (await bench.start()).port, {}, "Press.Nothing"),
  },
  itemRow("the item may not be read", "access_denied", "access_denied", "0xC0040006 OPC_E_BADRIGHTS"),
  itemRow("the item is of a type that the protocol does not have", "type_unsupported", "type_mismatch"),
  itemRow("the device behind the server does not answer", "no_answer", "no_answer"),
  itemRow("there has been no value yet", "no_value", "stale"),
  itemRow("the server refuses the item for a reason of its own", "device_error", "device_error", "4820"),
  quality("the server calls the value bad", 0x00, "device_error", /OPC quality 0x0000 \(bad\)/),
  quality("the item has a configuration error", 0x04, "not_found", /configuration error/),
  quality("the device is not connected to the server", 0x08, "no_answer", /not connected/),
  quality("the sensor has failed, its value is at its lower limit", 0x11, "device_error", /0x0011 \(bad, sensor failure, limited low\)/),
  quality("the server has the last known value alone", 0x14, "stale", /last known value/),
  quality("the server waits for the first value", 0x20, "stale", /waiting for initial data/),
  held("a text where a number belongs", "not_a_number", /sends NaN/, (item) => {
    item.value = Number.NaN;
  }),
  held("a value that is not of its type", "type_mismatch", /sends "\\"much\\"" as float64/, (item) => {
    item.value = "much";
  }),
];

export const ROWS: readonly Row[] = [...network, ...security, ...gateway, ...variable];
