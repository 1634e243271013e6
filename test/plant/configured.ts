import path from "node:path";
import type { DemoMachine } from "../../simulators/machines/machine.ts";
import type { Api } from "../support/api.ts";
import { freePort, isFree } from "../support/free-port.ts";

/** The place where the demo is, all on 127.0.0.1; the documents name these. */
export const PORTS = {
  api: 8420,
  http: 9420,
  page: 8090,
  broker: 1883,
  machines: {
    press: 1502,
    oven: 1503,
    conveyor: 1504,
    robot: 4841,
    mixer: 1102,
    palletizer: 1103,
    packer: 44818,
    filler: 19600,
    capper: 17000,
    moulder: 12020,
  },
  opcua: 4840,
} as const;
/** Settings, keys and state, while it runs. */
export const FOLDER = path.resolve(".demo");

/** Name of the data sink whose account is checked. */
export const BROKER_SINK = "plant broker";

/** Those of PORTS that another program has. */
export async function takenPorts(): Promise<readonly number[]> {
  const taken: number[] = [];
  for (const port of [PORTS.api, PORTS.http, PORTS.page, PORTS.broker, PORTS.opcua, ...Object.values(PORTS.machines)])
    if (!(await isFree(port))) taken.push(port);
  return taken;
}

type Ports<T> = { readonly [K in keyof T]: T[K] extends number ? number : Ports<T[K]> };

/** PORTS, with another port in the place of each that is taken, and of no other one. */
export async function portsWithout(taken: readonly number[]): Promise<Ports<typeof PORTS>> {
  const free = async (port: number): Promise<number> => (taken.includes(port) ? await freePort() : port);
  const { machines, ...own } = PORTS;
  const [api, http, page, broker, opcua] = await Promise.all([own.api, own.http, own.page, own.broker, own.opcua].map(free));
  const moved = await Promise.all(Object.entries(machines).map(async ([name, port]) => [name, await free(port)] as const));
  return {
    api: api ?? own.api,
    http: http ?? own.http,
    page: page ?? own.page,
    broker: broker ?? own.broker,
    opcua: opcua ?? own.opcua,
    machines: { ...machines, ...Object.fromEntries(moved) },
  };
}

/** Makes the data sinks, data sources and variables of the plant over the API, as a person or a platform would. */
export async function configure(
  api: Api,
  machines: readonly DemoMachine[],
  sinks: { readonly broker: number; readonly opcua: number },
  collector: string,
): Promise<void> {
  await api.post("/v2/data-sinks", {
    name: BROKER_SINK,
    collector,
    details: { type: "mqtt", host: "127.0.0.1", port: sinks.broker, topic: "plant/{source}" },
  });
  // Open to any client of this computer, so that one can be tried at once; a sink that is not told so asks for users and certificates.
  await api.post("/v2/data-sinks", {
    name: "plant server",
    collector,
    details: { type: "opcua", port: sinks.opcua, security_modes: ["None", "Sign", "SignAndEncrypt"], anonymous: true },
  });
  for (const [i, machine] of machines.entries()) {
    const source = await api.post("/v2/data-sources", {
      name: machine.name,
      collector,
      machine: `00000000-0000-4000-8000-${String(i + 1).padStart(12, "0")}`,
      details: machine.details,
    });
    await api.patch(`/v2/data-sources/${source.uuid}`, { readout_interval: machine.readoutIntervalS });
    for (const variable of machine.variables) await api.post("/ext/v1/variables", { data_source: source.uuid, ...variable });
  }
}
