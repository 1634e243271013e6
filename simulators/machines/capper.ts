import { Gateway } from "../../gateway/server.ts";
import { SimulatedPlant, SimulatedServer } from "../../gateway/simulated-plant.ts";
import type { DemoMachine } from "./machine.ts";
import { type Place, switchable } from "./switchable.ts";

const MS_PER_CAP = 420;
const SERVER_NAME = "Capper.OpcDa.1";

const isRunning = (ms: number): boolean => Math.floor(ms / 9000) % 6 !== 5;

function plant(): SimulatedPlant {
  const server = new SimulatedServer("Capper OPC DA server", [
    { item: "Head.Torque", path: ["Head", "Torque"], type: "float32", value: (ms) => (isRunning(ms) ? 1.8 + 0.2 * Math.sin(ms / 900) : 0) },
    { item: "Head.Running", path: ["Head", "Running"], type: "bool", value: isRunning },
    { item: "Counter.Caps", path: ["Counter", "Caps"], type: "uint64", value: (ms) => BigInt(Math.floor(ms / MS_PER_CAP) % 10_000_000) },
    { item: "Recipe.Name", path: ["Recipe", "Name"], type: "string", value: "Lemonade 7" },
    // Its sensor is old: the server has the value and doubts it.
    {
      item: "Hopper.Level",
      path: ["Hopper", "Level"],
      type: "int16",
      value: (ms) => 60 + Math.round(20 * Math.sin(ms / 20_000)),
      quality: 0x58,
    },
  ]);
  const made = new SimulatedPlant();
  made.add({ protocol: "OPC_DA", server_name: SERVER_NAME }, server);
  return made;
}

/** A capper whose OPC DA server is read through the reference gateway, at this place. */
export async function startCapper(at: Place): Promise<DemoMachine> {
  const { first, current: _current, ...power } = await switchable(at, (place) => Gateway.start({ backend: plant(), ...place }));
  return {
    name: "capper-9",
    readoutIntervalS: 1,
    details: {
      type: "vendor_gateway",
      host: "127.0.0.1",
      port: first.port,
      protocol_details: { protocol: "OPC_DA", server_name: SERVER_NAME },
    },
    variables: [
      { name: "torque", address: "Head.Torque", type: "float32", unit: "Nm" },
      { name: "running", address: "Head.Running", type: "bool", unit: null },
      { name: "caps", address: "Counter.Caps", type: "uint64", unit: null },
      { name: "recipe", address: "Recipe.Name", type: "string", unit: null },
      { name: "level", address: "Hopper.Level", type: "int16", unit: "%" },
    ],
    ...power,
  };
}
