import manifest from "../package.json" with { type: "json" };
import type { RunningMachine, SimulatedFault, SimulatedMachine, Simulation } from "../src/model/simulation.ts";
import { Gate } from "./gate.ts";
import type { DemoMachine } from "./machines/machine.ts";
import type { Place } from "./machines/switchable.ts";

/** What `collector simulate` loads: a machine for each type of data source whose protocol is public. */

interface Scenario {
  readonly type: string;
  readonly name: string;
  readonly what: string;
  readonly port: number;
  /** Beside those of the network. */
  readonly faults?: readonly SimulatedFault[];
  readonly load: () => Promise<(at: Place) => Promise<DemoMachine>>;
  /** Absent: host and port. */
  readonly words?: (host: string, port: number) => readonly string[];
  /** After host and port. */
  readonly more?: readonly string[];
  readonly notes?: readonly string[];
  readonly hasUdp?: boolean;
}

const OF_NETWORK: readonly SimulatedFault[] = ["silent", "refuses", "slow", "drop"];
/** Faults that a gate before the device makes. */
const OF_GATE: readonly SimulatedFault[] = [...OF_NETWORK, "deaf", "hurried"];

const SCENARIOS: readonly Scenario[] = [
  {
    type: "modbus_tcp",
    name: "press-1",
    what: "a press with a Modbus controller",
    port: 1502,
    faults: ["locked", "wrong-unit", "deaf", "hurried", "one-at-a-time", "short-blocks"],
    load: async () => (await import("./machines/press.ts")).startPress,
  },
  {
    type: "opcua",
    name: "robot-4",
    what: "a robot with an OPC UA server",
    port: 4841,
    load: async () => (await import("./machines/robot.ts")).startRobot,
    words: (host, port) => [`endpoint_url=opc.tcp://${host}:${port}`],
  },
  {
    type: "s7",
    name: "mixer-5",
    what: "a mixer with an S7 controller",
    port: 1102,
    faults: ["locked"],
    load: async () => (await import("./machines/mixer.ts")).startMixer,
    more: ["slot=1"],
  },
  {
    type: "s7plus",
    name: "palletizer-6",
    what: "a palletizer with an S7-1500",
    port: 1103,
    load: async () => (await import("./machines/palletizer.ts")).startPalletizer,
  },
  {
    type: "vendor_a",
    name: "packer-7",
    what: "a packer with a CompactLogix",
    port: 44_818,
    faults: ["locked"],
    load: async () => (await import("./machines/packer.ts")).startPacker,
  },
  {
    type: "fins",
    name: "filler-8",
    what: "a filler with an Omron controller",
    port: 19_600,
    faults: ["locked"],
    load: async () => (await import("./machines/filler.ts")).startFiller,
    more: ["local_address=0.0.0", "remote_address=0.10.0"],
    hasUdp: true,
  },
  {
    type: "vendor_gateway",
    name: "capper-9",
    what: "a capper with OPC DA and a gateway",
    port: 17_000,
    load: async () => (await import("./machines/capper.ts")).startCapper,
    more: ["protocol=OPC_DA", "server_name=Capper.OpcDa.1"],
  },
  {
    type: "odac",
    name: "moulder-10",
    what: "a moulder with an ODAC in host mode",
    port: 12_020,
    load: async () => (await import("./machines/moulder.ts")).startMoulder,
    notes: ["odac is read by a profile: put `bindings: {odac: {profile: /usr/share/collector/profiles/odac-host.yaml}}` into the settings"],
  },
];

/** The machine of a scenario, and what can be wrong with it. */
function machineOf({
  type,
  name,
  what,
  port,
  faults = [],
  load,
  words,
  more = [],
  notes = [],
  hasUdp = false,
}: Scenario): SimulatedMachine {
  const hostAndPort = (host: string, at: number): readonly string[] => [`host=${host}`, `port=${at}`, ...more];
  return {
    type,
    name,
    what,
    port,
    faults: [...OF_NETWORK, ...faults],
    async start({ host, port: at, faults: planned }): Promise<RunningMachine> {
      const start = await load();
      const isGated = planned.some((fault) => OF_GATE.includes(fault));
      const machine = await start(isGated ? { port: 0 } : { port: at, host });
      const gate = isGated ? await gateBefore(machine, { host, port: at, devicePort: machine.port(), hasUdp }) : undefined;
      const listening = gate?.port ?? machine.port();
      return {
        port: listening,
        words: (reached) => (words ?? hostAndPort)(reached, listening),
        variables: machine.variables,
        notes,
        async plant(now) {
          machine.refuseReads?.(now.includes("locked"));
          machine.moveUnit?.(now.includes("wrong-unit"));
          machine.takesOne?.(now.includes("one-at-a-time"));
          machine.shortenReads?.(now.includes("short-blocks"));
          await gate?.plant(now);
        },
        async close() {
          await gate?.close();
          await machine.switchOff();
        },
      };
    },
  };
}

async function gateBefore(machine: DemoMachine, options: Parameters<typeof Gate.start>[0]): Promise<Gate> {
  try {
    return await Gate.start(options);
  } catch (error) {
    await machine.switchOff();
    throw error;
  }
}

export const simulation: Simulation = { version: manifest.version, machines: SCENARIOS.map(machineOf) };
