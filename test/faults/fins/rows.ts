import net, { type AddressInfo } from "node:net";
import { typeOf } from "../../../drivers/driver.ts";
import driver from "../../../drivers/fins/driver.ts";
import { END_CODES, FinsMemory, type FinsPlc, READ_COMMANDS, startFinsPlc, TCP_ERRORS } from "../../../drivers/fins/simulator.ts";
import { silentLog } from "../../../src/model/context.ts";
import { freePort } from "../../support/free-port.ts";
import { type FailureRow, Steps } from "../support/failures.ts";

/** What a row may use; all of it ends with the row. */
export interface Bench {
  start(change?: (plc: FinsPlc) => void): Promise<FinsPlc>;
  /** Runs when the row is over. */
  later(work: () => unknown): void;
}

export type Row = FailureRow<Bench, "network" | "connection" | "relay" | "everything" | "variable">;

export function createBench(): Bench & { close(): Promise<void> } {
  const { later, close } = new Steps();
  return {
    later,
    async start(change = () => {}) {
      const memory = new FinsMemory();
      memory.create("D", 100);
      const plc = await startFinsPlc({ memory });
      later(() => plc.close());
      change(plc);
      return plc;
    },
    close,
  };
}

interface Asked {
  readonly details?: object;
  readonly local?: object;
  readonly variable?: string;
}

const UDP: Asked = { local: { transport: "udp" } };

/** Connects and reads one variable. */
async function readOnce(bench: Bench, port: number, { details = {}, local = {}, variable = "D0:UINT" }: Asked = {}): Promise<unknown> {
  const ctx = { signal: new AbortController().signal, log: silentLog, timeouts: { nameMs: 1000, connectMs: 1000, answerMs: 500 } };
  const settings = driver.settings.parse({ transport: "tcp", ...local });
  const common = { type: "fins", host: "127.0.0.1", port, local_address: "0.0.0", remote_address: "0.10.0" };
  const session = await driver.connect({ details: driver.details.parse({ ...common, ...details }), settings, secrets: {} }, ctx);
  bench.later(() => session.close());
  const [address = "", word = ""] = variable.split(":");
  const point = { index: 0, ...driver.parseAddress(address, typeOf(driver, word), settings) };
  for await (const [found] of session.prepare?.([point], ctx) ?? []) {
    if (found && "refusal" in found) throw found.refusal;
    const ready = found ? { index: 0, address: found.address, type: found.type } : point;
    const [request] = driver.plan([ready], session.limits);
    if (!request) throw new Error("nothing is planned");
    const [reading] = await session.read(request, ctx);
    return reading;
  }
  throw new Error("nothing is prepared");
}

const from =
  (change: (plc: FinsPlc) => void, asked: Asked = {}) =>
  async (bench: Bench) =>
    readOnce(bench, (await bench.start(change)).port, asked);

/** Once it is connected, each request ends like this. */
const onRead = (odd: ReturnType<NonNullable<FinsPlc["misbehave"]>>, asked: Asked = {}) =>
  from((plc) => {
    plc.misbehave = ({ items }) => (items.length > 0 ? odd : undefined);
  }, asked);

const network: readonly Row[] = [
  {
    group: "network",
    what: "nothing listens on the port, over TCP",
    reason: "CONNECTION_REFUSED",
    detail: /^connect ECONNREFUSED/,
    run: async (bench) => readOnce(bench, await freePort()),
  },
  {
    group: "network",
    what: "nothing listens on the port, over UDP",
    reason: "CONNECTION_REFUSED",
    detail: /^recvmsg ECONNREFUSED/,
    run: async (bench) => readOnce(bench, await freePort(), UDP),
  },
  {
    group: "network",
    what: "nothing listens on the port, with the transport auto",
    reason: "CONNECTION_REFUSED",
    detail: /^over FINS\/TCP: connect ECONNREFUSED .*; over FINS\/UDP: recvmsg ECONNREFUSED/,
    run: async (bench) => readOnce(bench, await freePort(), { local: { transport: "auto" } }),
  },
  {
    group: "network",
    what: "another protocol answers",
    reason: "UNKNOWN",
    condition: "protocol_violation",
    detail: /48545450 where a FINS\/TCP header begins/,
    async run(bench) {
      const server = net.createServer((socket) => {
        socket.on("error", () => {});
        bench.later(() => socket.destroy());
        socket.on("data", () => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"));
      });
      await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
      bench.later(() => server.close());
      return readOnce(bench, (server.address() as AddressInfo).port);
    },
  },
  {
    group: "network",
    what: "the controller does not answer a request, over TCP",
    reason: "TIMEOUT",
    detail: /^no answer within 500 ms to D0$/,
    run: onRead({ isSilent: true }),
  },
  {
    group: "network",
    what: "the controller does not answer a request, over UDP",
    reason: "TIMEOUT",
    detail: /within 500 ms to D0, sent 3 times/,
    run: onRead({ isSilent: true }, UDP),
  },
  {
    group: "network",
    what: "the controller answers nothing at all, over UDP",
    reason: "TIMEOUT",
    detail: /within 500 ms to D0, to know whether it is there, sent 3 times/,
    run: from((plc) => {
      plc.misbehave = () => ({ isSilent: true });
    }, UDP),
  },
  {
    group: "network",
    what: "answers come from another address, over UDP",
    reason: "TIMEOUT",
    detail: /sent 3 times; \d+ answers came from 127\.0\.0\.2:\d+ instead$/,
    run: from((plc) => {
      plc.udpFrom = "127.0.0.2";
    }, UDP),
  },
  {
    group: "network",
    what: "answers come from another port, to a local port that several sources share",
    reason: "TIMEOUT",
    detail: /sent 3 times; \d+ answers came from 127\.0\.0\.1:\d+ instead$/,
    async run(bench) {
      const local = { transport: "udp", local_port: await freePort() };
      await readOnce(bench, (await bench.start()).port, { local });
      const other = await bench.start((plc) => {
        plc.udpFrom = "127.0.0.1";
      });
      return readOnce(bench, other.port, { local });
    },
  },
  {
    group: "network",
    what: "the controller answers to its own port of the collector's machine only",
    reason: "TIMEOUT",
    detail: /; it answers what is sent from port \d+ of this machine$/,
    async run(bench) {
      const port = await freePort();
      const plc = await startFinsPlc({ host: "127.0.0.2", port, memory: new FinsMemory() });
      bench.later(() => plc.close());
      plc.udpAnswers = { host: () => "127.0.0.1", port };
      return readOnce(bench, port, { ...UDP, details: { host: "127.0.0.2" } });
    },
  },
  {
    group: "network",
    what: "another program has the local port",
    reason: "UNKNOWN",
    condition: "collector_host_trouble",
    detail: /^the local UDP port \d+ cannot be used: /,
    async run(bench) {
      const plc = await bench.start();
      return readOnce(bench, plc.port, { local: { transport: "udp", local_port: plc.port } });
    },
  },
  {
    group: "network",
    what: "the controller answers with another number of bytes",
    reason: "UNKNOWN",
    condition: "protocol_violation",
    detail: /3 bytes answered a read of 2 \(D0\)/,
    run: onRead({ change: (frame) => Buffer.concat([frame, Buffer.of(0)]) }),
  },
  {
    group: "network",
    what: "the controller closes the connection on a request",
    reason: "CONNECTION_CLOSED",
    detail: /closed the connection/,
    run: onRead({ hangUp: "fin" }),
  },
  {
    group: "network",
    what: "the controller resets the connection on a request",
    reason: "CONNECTION_RESET",
    detail: /ECONNRESET/,
    run: onRead({ hangUp: "rst" }),
  },
  {
    group: "network",
    what: "the unit ends the connection with an error notification",
    reason: "UNKNOWN",
    detail: /ended the FINS\/TCP connection: error 0x02/,
    run: onRead({ notification: TCP_ERRORS.tooLong }),
  },
];

const refused = (what: string, code: number, detail: RegExp): Row => ({
  group: "connection",
  what,
  reason: "UNKNOWN",
  detail,
  run: from(({ tcp }) => {
    tcp.handshakeError = code;
  }),
});
const misconfigured = (what: string, details: object, detail: RegExp, local: object = {}): Row => ({
  group: "connection",
  what,
  reason: "UNKNOWN",
  condition: "configuration_invalid",
  detail,
  run: from(() => {}, { details, local }),
});
const connection: readonly Row[] = [
  refused("all connections of the unit are in use", TCP_ERRORS.allTaken, /error 0x20: all connections/),
  refused("the node of the collector is connected already", TCP_ERRORS.nodeConnected, /error 0x21: the node is connected already/),
  refused("the unit protects itself from this address", TCP_ERRORS.addressRefused, /error 0x22: this address/),
  refused("the node of the collector is out of range", TCP_ERRORS.nodeOutOfRange, /error 0x23/),
  refused("the collector has the node of the controller", TCP_ERRORS.sameNode, /error 0x24: client and server/),
  refused("no automatic node is free", TCP_ERRORS.noFreeNode, /error 0x25/),
  {
    group: "connection",
    what: "the unit does not answer the request for a node",
    reason: "TIMEOUT",
    detail: /to the request for a node$/,
    run: from(({ tcp }) => void Object.assign(tcp, { handshakeError: TCP_ERRORS.allTaken, refusalForm: "silent" })),
  },
  misconfigured("both addresses name one node", { local_address: "0.10.0" }, /are both node 10 of network 0/),
  misconfigured(
    "over UDP, the node that follows from the own address is the controller's",
    { remote_address: "0.1.0" },
    /are both node 1 of/,
    {
      transport: "udp",
    },
  ),
];

const code = (what: string, endCode: number, detail: RegExp): Row => ({
  group: "connection",
  what,
  reason: "UNKNOWN",
  detail,
  run: from((plc) => {
    plc.misbehave = () => ({ endCode });
  }),
});
const unreachable: readonly Row[] = [
  code("remote_address names a node that is not there", END_CODES.nodeNotInNetwork, /end code 0x0201/),
  code("remote_address names a unit that is not there", END_CODES.noSuchUnit, /end code 0x0202/),
  code("remote_address names a network that is not in the routing tables", END_CODES.noRoute, /end code 0x0501/),
  code("the CPU at the destination has an error", 0x0302, /end code 0x0302/),
];

const RELAY = { endCode: 0x0201, network: 2, node: 10 };
const relay: readonly Row[] = [
  {
    group: "relay",
    what: "a node on the way cannot pass the request on",
    reason: "FINS_NETWORK_RELAY_ERROR",
    detail: /^relay error at network 2, node 10, on the way to node 10: end code 0x0201/,
    run: onRead({ relay: RELAY }),
  },
  {
    group: "relay",
    what: "the same, and the answer does not say where",
    reason: "UNKNOWN",
    detail: /^relay error, end code 0x0201 .* it does not say where/,
    run: onRead({ relay: { ...RELAY, isCut: true } }),
  },
  {
    group: "relay",
    what: "a network is not in the routing tables of a node on the way",
    reason: "FINS_NETWORK_RELAY_ERROR",
    detail: /end code 0x0501/,
    run: onRead({ relay: { ...RELAY, endCode: END_CODES.noRoute } }),
  },
];

const whole = (what: string, endCode: number, fault: string, scope: string, detail: RegExp): Row => ({
  group: "everything",
  what,
  fault,
  scope,
  detail,
  run: from((plc) => {
    plc.readError = endCode;
  }),
});
const everything: readonly Row[] = [
  whole("the controller is busy", END_CODES.busy, "device_error", "busy", /0x0204/),
  whole("too many commands are under way", END_CODES.tooManyCommands, "device_error", "busy", /0x2604/),
  whole("the controller cannot in its mode", 0x2203, "device_error", "busy", /0x2203/),
  whole("the node behind a gateway does not answer", 0x0205, "no_answer", "everything", /0x0205/),
  whole("another device has the access right", 0x3001, "access_denied", "everything", /0x3001/),
];

const variableRow = (
  what: string,
  fault: string,
  variable: string,
  detail: RegExp,
  change: (plc: FinsPlc) => void,
  asked: Asked = {},
): Row => ({
  group: "variable",
  what,
  fault,
  scope: "points",
  detail,
  run: from(change, { ...asked, variable }),
});
const held = (what: string, words: readonly number[], type: string, detail: RegExp): Row => ({
  group: "variable",
  what,
  fault: "not_a_number",
  detail,
  run: from((plc) => void plc.memory.areas.get("D")?.set(words), { variable: `D0:${type}` }),
});
const nothing = () => {};
const untold = (what: string, odd: ReturnType<NonNullable<FinsPlc["misbehave"]>>, detail: RegExp): Row =>
  variableRow(
    what,
    "address_invalid",
    "H0:UINT",
    detail,
    (plc) => {
      plc.misbehave = ({ code: asked }) => (asked === READ_COMMANDS.controllerData ? odd : undefined);
    },
    { details: { target_plc: "Classic" }, local: { transport: "udp" } },
  );
const refusing = (endCode: number) => (plc: FinsPlc) => void plc.memory.refused.set("D", endCode);
const variable: readonly Row[] = [
  variableRow("the controller has no such bank", "not_found", "E5_0:UINT", /end code 0x1101.*for E5_0/, nothing),
  variableRow("the area is shorter", "out_of_range", "D100:UINT", /end code 0x1103.*for D100/, nothing),
  variableRow("the end of the value is behind the area", "out_of_range", "D99:int16[50]", /end code 0x110[34].*for D99\.\.148/, nothing),
  variableRow("the area is protected", "access_denied", "D0:UINT", /end code 0x2002/, refusing(END_CODES.isProtected)),
  variableRow("the controller has no such file device", "not_found", "D0:UINT", /end code 0x2301/, refusing(0x2301)),
  variableRow("a code that is in no list", "device_error", "D0:UINT", /end code 0x6F01 \(not in the protocol's list\)/, refusing(0x6f01)),
  variableRow(
    "an area that Classic controllers do not have",
    "address_invalid",
    "W0:UINT",
    /CV series has no W; where it is a CS/,
    nothing,
    {
      details: { target_plc: "Classic" },
      local: { plc_series: "cv" },
    },
  ),
  untold(
    "the controller refuses to say its model, and the place of an area depends on it",
    { endCode: 0x0401 },
    /: it does not say its model$/,
  ),
  untold(
    "the controller gives no answer when asked for its model, and the place of an area depends on it",
    { isSilent: true },
    /: it gives no answer when asked for its model$/,
  ),
  held("a REAL that is not a number", [0, 0x7fc0], "REAL", /NaN/),
  held("a word that is not BCD", [0x12a4], "BCD", /0x12a4 is not a value of type UINT_BCD/),
];

export const ROWS: readonly Row[] = [...network, ...connection, ...unreachable, ...relay, ...everything, ...variable];
