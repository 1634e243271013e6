import type { AnyDriver, AnySession, DriverContext, Point } from "../../drivers/driver.ts";
import { DRIVERS } from "../../drivers/index.ts";
import type { Simulator, StartSimulator } from "../../drivers/simulator.ts";
import { type Log, silentLog } from "../../src/model/context.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type DataType, parseDataType } from "../../src/model/value.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";

/** A driver, its simulator, and a proxy between them that misbehaves. */
export interface Rig {
  readonly type: string;
  readonly driver: AnyDriver;
  readonly simulator: Simulator;
  readonly proxy: FaultProxy;
  readonly settings: unknown;
  detailsFor(port: number): unknown;
  pointsOf(list: readonly { readonly address: string; readonly type: string }[]): Point[];
  connect(ctx?: DriverContext, port?: number): Promise<AnySession>;
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

export const typeOf = (text: string): DataType => {
  const type = parseDataType(text);
  if (!type) throw new Error(`the simulator has the type ${text}, which is none`);
  return type;
};

/** The reason that something fails with; `ok` where it does not. */
export async function reasonOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "ok";
  } catch (error) {
    return error instanceof ReasonError ? error.reason.type : `not a ReasonError: ${error}`;
  }
}

/** `change` makes another driver of the one in the registry. */
export async function startRig(type: string, change: (driver: AnyDriver) => AnyDriver = (driver) => driver): Promise<Rig> {
  const entry = DRIVERS[type];
  if (!entry) throw new Error(`${type} is not in the registry`);
  const driver = change((await entry.driver()).default);
  const settings = driver.settings.parse({});
  const { startSimulator } = (await import(`../../drivers/${type}/simulator.ts`)) as { startSimulator: StartSimulator };
  const simulator = await startSimulator();
  const proxy = await startFaultProxy(simulator.port);
  const detailsFor = (port: number) => driver.details.parse(simulator.details("127.0.0.1", port));
  return {
    type,
    driver,
    simulator,
    proxy,
    settings,
    detailsFor,
    pointsOf: (list) =>
      list.map((variable, index) => ({ index, ...driver.parseAddress(variable.address, typeOf(variable.type), settings) })),
    connect: (ctx = within(5000), port = proxy.port) =>
      driver.connect({ details: detailsFor(port), settings, secrets: { password: SECRET } }, ctx),
    async close() {
      await proxy.close();
      await simulator.close();
    },
  };
}
