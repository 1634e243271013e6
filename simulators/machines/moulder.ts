import path from "node:path";
import { startSimulator } from "../../drivers/odac/simulator.ts";
import type { DemoMachine } from "./machine.ts";
import { type Place, switchable } from "./switchable.ts";

/** What the settings of the demo bind: the profile that ships, as it is. */
export const MOULDER_BINDINGS = { odac: { profile: path.resolve(import.meta.dirname, "../../config/profiles/odac-host.yaml") } };

const MS_PER_SHOT = 1700;

const PARAMETERS: readonly (readonly [code: string, text: (ms: number) => string])[] = [
  ["PV", (ms) => (215 + 3 * Math.sin(ms / 7000)).toFixed(1)],
  ["SP", () => "215.0"],
  ["CYC", (ms) => String(Math.floor(ms / MS_PER_SHOT) % 10_000_000)],
  ["SW", (ms) => (Math.floor(ms / 6000) % 5 === 4 ? ">0003" : ">0001")],
  ["ID", () => "LID 40 MM"],
];

/** A moulder with an ODAC in host mode, at this place. Its controller has no parameter with the code HUM. */
export async function startMoulder(at: Place): Promise<DemoMachine> {
  const {
    first,
    current: _current,
    ...power
  } = await switchable(at, async (place) => {
    const simulator = await startSimulator(place);
    simulator.parameters.clear();
    for (const [code, text] of PARAMETERS) simulator.parameters.set(code, () => text(Date.now()));
    return simulator;
  });
  return {
    name: "moulder-10",
    readoutIntervalS: 1,
    // As it is created: nothing in it forces a protocol.
    details: { type: "odac", host: "127.0.0.1", port: first.port },
    variables: [
      { name: "temperature", address: "PV", type: "float64", unit: "°C" },
      { name: "set point", address: "SP", type: "float64", unit: "°C" },
      { name: "shots", address: "CYC", type: "uint32", unit: null },
      { name: "status word", address: "SW", type: "uint16", unit: null },
      { name: "recipe", address: "ID", type: "string", unit: null },
      { name: "humidity", address: "HUM", type: "float64", unit: "%" },
    ],
    ...power,
  };
}
