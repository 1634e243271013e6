import { type OpcuaSimulator, PLANT_NAMESPACE, startOpcuaSimulator } from "../../drivers/opcua/simulator.ts";
import type { DemoMachine } from "./machine.ts";
import { type Place, switchable } from "./switchable.ts";

const ID = (id: string): string => `nsu=${PLANT_NAMESPACE};s=${id}`;
const MOVING = [
  { id: "Speed", name: "speed", unit: "mm/s", value: (ms: number) => 250 + 40 * Math.sin(ms / 1700) },
  { id: "Torque", name: "torque", unit: "N·m", value: (ms: number) => 18 + 3 * Math.sin(ms / 600) },
  { id: "Cycles", name: "cycles", unit: "", value: (ms: number) => 5200 + Math.floor(ms / 4000) },
];

/** A robot that speaks OPC UA, at this place. Its server offers every mode, and a user `reader`. */
export async function startRobot(at: Place): Promise<DemoMachine> {
  let certificate: OpcuaSimulator["certificate"] | undefined;
  const {
    first,
    current: _current,
    ...power
  } = await switchable(at, async (place) => {
    const simulator = await startOpcuaSimulator({ ...place, moving: MOVING, ...(certificate && { certificate }) });
    certificate = simulator.certificate;
    return simulator;
  });
  return {
    name: "robot-4",
    readoutIntervalS: 1,
    details: {
      type: "opcua",
      host: "127.0.0.1",
      port: first.port,
      endpoint_url: first.endpointUrl,
      security_settings: { security_mode: "None", endpoint_security_policy: "None", token_security_policy: "None" },
      user_identity: { type: "Anonymous" },
    },
    variables: [
      { name: "speed", address: ID("Speed"), type: "float64", unit: "mm/s" },
      { name: "torque", address: ID("Torque"), type: "float64", unit: "N·m" },
      { name: "cycles", address: ID("Cycles"), type: "float64", unit: null },
      { name: "mode", address: ID("Enumeration"), type: "int32", unit: null },
    ],
    ...power,
  };
}
