import { SimulatedPlant, SimulatedServer } from "./simulated-plant.ts";

const SECONDS_PER_CYCLE = 12;

/** What the reference gateway shows where it is started without a machine: a press by OPC DA and a line by PVI. */
export function examplePlant(now: () => number = Date.now): SimulatedPlant {
  const plant = new SimulatedPlant();
  const cycle = (ms: number) => (ms / 1000) % SECONDS_PER_CYCLE;
  const press = new SimulatedServer(
    "Plant OPC DA server",
    [
      {
        item: "Press.Force",
        path: ["Press", "Force"],
        type: "float64",
        value: (ms) => round(800 * Math.sin((cycle(ms) / SECONDS_PER_CYCLE) * Math.PI)),
        unit: "kN",
      },
      {
        item: "Press.Strokes",
        path: ["Press", "Strokes"],
        type: "uint32",
        value: (ms) => Math.floor(ms / 1000 / SECONDS_PER_CYCLE) % 1_000_000,
      },
      { item: "Press.Running", path: ["Press", "Running"], type: "bool", value: true },
      { item: "Press.Tool", path: ["Press", "Tool"], type: "string", value: "T-118", comment: "As the tool's tag says it" },
      {
        item: "Press.Oil.Temperature",
        path: ["Press", "Oil", "Temperature"],
        type: "float32",
        value: (ms) => round(52 + 3 * Math.sin(ms / 60_000)),
        unit: "°C",
      },
      {
        item: "Press.Oil.Level",
        path: ["Press", "Oil", "Level"],
        type: "int16",
        value: 74,
        quality: 0x58,
        unit: "%",
        comment: "Below its range: the sensor is old",
      },
      { item: "Press.Energy", path: ["Press", "Energy"], type: "uint64", value: (ms) => BigInt(Math.floor(ms)) * 1_000_000n, unit: "mWh" },
      { item: "Press.Profile", path: ["Press", "Profile"], type: "float64[4]", value: [0, 12.5, 80, 12.5] },
    ],
    now,
  );
  const line = new SimulatedServer(
    "PVI manager",
    [
      { item: "gSpeed", type: "float32", value: (ms) => round(1.5 + 0.25 * Math.sin(ms / 8000)), unit: "m/s" },
      { item: "gPieces", type: "uint32", value: (ms) => Math.floor(ms / 700) % 10_000_000 },
      { item: "gState", type: "int16", value: (ms) => (Math.floor(ms / 7000) % 5 === 4 ? 2 : 1) },
    ],
    now,
  );
  plant.add({ protocol: "OPC_DA", server_name: "Plant.OpcDa.1" }, press);
  plant.add({ protocol: "PVI", path: "@Pvi/LN1/Line/Cpu/Main" }, line);
  return plant;
}

const round = (value: number): number => Math.round(value * 100) / 100;
