import type { AnyDriver, AnySession, DriverContext, Endpoint, Point } from "../../drivers/driver.ts";
import { typeOf as typeOfWord } from "../../drivers/driver.ts";
import { type Log, silentLog } from "../../src/model/context.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { DataType } from "../../src/model/value.ts";
import { type ProxyFault, startFaultProxy } from "../support/fault-proxy.ts";
import { type DatagramFault, startUdpFaultProxy } from "../support/udp-fault-proxy.ts";
import { socketsConnectedTo } from "../support/udp-sockets.ts";
import { type Subject, subjectOf, type TestSimulator, type Traits } from "./subjects.ts";

export type Transport = Endpoint["transport"];
/** A fault of the proxy of either transport. */
export type Fault = ProxyFault | DatagramFault;

/** Between a driver and its simulator, for either transport. */
export interface RigProxy {
  readonly port: number;
  readonly seed: number;
  delayMs: number;
  /** Throws where the transport does not know the fault. */
  misbehave(fault: Fault): Promise<void>;
  /** Of the driver, open now. */
  connections(): number;
  /** All that the driver has sent, per connection, in order. */
  sent(): readonly Buffer[];
  close(): Promise<void>;
}

/** A driver, its simulator, and a proxy between them that misbehaves. */
export interface Rig {
  readonly type: string;
  readonly transport: Transport;
  readonly traits: Traits;
  readonly driver: AnyDriver;
  readonly simulator: TestSimulator;
  readonly proxy: RigProxy;
  readonly settings: unknown;
  detailsFor(port: number): unknown;
  typeOf(text: string): DataType;
  pointsOf(list: readonly { readonly address: string; readonly type: string }[]): Point[];
  connect(ctx?: DriverContext, port?: number): Promise<AnySession>;
  /** Connections, or over UDP sockets, that the driver has open straight to the simulator now. */
  connections(): number;
  close(): Promise<void>;
}

/** What a driver is given as its password, and what must never be seen again. */
export const SECRET = "hunter2-S3cr3t-äöü";

/** A deadline for the whole, and time-outs well below it. */
export const within = (ms: number, answerMs = ms, log: Log = silentLog): DriverContext => ({
  signal: AbortSignal.timeout(ms),
  log,
  timeouts: { nameMs: ms, connectMs: ms, answerMs },
});

/** The reason that something fails with; `ok` where it does not. */
export async function reasonOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "ok";
  } catch (error) {
    return error instanceof ReasonError ? error.reason.type : `not a ReasonError: ${error}`;
  }
}

async function startTcpProxy(port: number): Promise<RigProxy> {
  const proxy = await startFaultProxy(port);
  return {
    port: proxy.port,
    seed: proxy.seed,
    get delayMs() {
      return proxy.delayMs;
    },
    set delayMs(ms) {
      proxy.delayMs = ms;
    },
    async misbehave(fault) {
      if (isFaultOfDatagrams(fault)) throw new Error(`the TCP proxy has no fault ${fault}`);
      proxy.fault = fault;
    },
    connections: proxy.connections,
    sent: proxy.sent,
    close: proxy.close,
  };
}

async function startUdpProxy(port: number): Promise<RigProxy> {
  const proxy = await startUdpFaultProxy(port);
  return {
    port: proxy.port,
    seed: proxy.seed,
    get delayMs() {
      return proxy.delayMs;
    },
    set delayMs(ms) {
      proxy.delayMs = ms;
    },
    async misbehave(fault) {
      if (isFaultOfStreams(fault)) throw new Error(`the UDP proxy has no fault ${fault}`);
      await proxy.misbehave(fault);
    },
    connections: () => proxy.connections(),
    sent: () => proxy.sent(),
    close: () => proxy.close(),
  };
}

const STREAM_FAULTS: readonly Fault[] = ["cut", "reset", "split", "close-now"];
const ONLY_DATAGRAM_FAULTS: readonly Fault[] = ["gone", "lost", "doubled", "shuffled", "garbage"];
const isFaultOfStreams = (fault: Fault): fault is Exclude<ProxyFault, DatagramFault> => STREAM_FAULTS.includes(fault);
const isFaultOfDatagrams = (fault: Fault): fault is Exclude<DatagramFault, ProxyFault> => ONLY_DATAGRAM_FAULTS.includes(fault);

/** `change` makes another driver of the subject's. */
export async function startRig(which: string | Subject, change: (driver: AnyDriver) => AnyDriver = (driver) => driver): Promise<Rig> {
  const subject = typeof which === "string" ? subjectOf(which) : which;
  const { type, traits } = subject;
  const driver = change(await subject.driver());
  const settings = driver.settings.parse(subject.settings ?? {});
  const simulator = await subject.startSimulator();
  const detailsFor = (port: number) => driver.details.parse(simulator.details("127.0.0.1", port));
  const { transport } = driver.endpoint(detailsFor(simulator.port), settings);
  const proxy = await (transport === "udp" ? startUdpProxy : startTcpProxy)(simulator.port);
  const typeOf = (text: string): DataType => {
    const wanted = typeOfWord(driver, text);
    if (!wanted) throw new Error(`the simulator has the type ${text}, which is not a type`);
    return wanted;
  };
  return {
    type,
    transport,
    traits,
    driver,
    simulator,
    proxy,
    settings,
    detailsFor,
    typeOf,
    pointsOf: (list) =>
      list.map((variable, index) => ({ index, ...driver.parseAddress(variable.address, typeOf(variable.type), settings) })),
    connect: (ctx = within(5000), port = proxy.port) =>
      driver.connect({ details: detailsFor(port), settings, secrets: { password: SECRET } }, ctx),
    connections: () => (transport === "udp" ? socketsConnectedTo(simulator.port).length : simulator.connections()),
    async close() {
      await proxy.close();
      await simulator.close();
    },
  };
}
