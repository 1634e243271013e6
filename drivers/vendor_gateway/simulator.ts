import { Gateway } from "../../gateway/server.ts";
import { type SimulatedItem, SimulatedPlant, SimulatedServer } from "../../gateway/simulated-plant.ts";
import type { Value } from "../../src/model/value.ts";
import type { Listening, Simulator } from "../simulator.ts";

/** What the simulated device holds; all types of the protocol. */
const ITEMS: readonly (SimulatedItem & { readonly value: Value })[] = [
  { item: "Press.Force", path: ["Press", "Force"], type: "float64", value: 812.5, unit: "kN" },
  { item: "Press.Temperature", path: ["Press", "Temperature"], type: "float32", value: Math.fround(52.1), unit: "°C" },
  { item: "Press.Strokes", path: ["Press", "Strokes"], type: "uint32", value: 4_204_000_111 },
  { item: "Press.Offset", path: ["Press", "Offset"], type: "int16", value: -1234 },
  { item: "Press.Mode", path: ["Press", "Mode"], type: "uint8", value: 3 },
  { item: "Press.Trim", path: ["Press", "Trim"], type: "int8", value: -3 },
  { item: "Press.Station", path: ["Press", "Station"], type: "uint16", value: 65_000 },
  { item: "Press.Balance", path: ["Press", "Balance"], type: "int32", value: -2_000_000_001 },
  { item: "Press.Energy", path: ["Press", "Energy"], type: "uint64", value: 18_446_744_073_709_551_615n, unit: "mWh" },
  { item: "Press.Drift", path: ["Press", "Drift"], type: "int64", value: -9_223_372_036_854_775_808n },
  { item: "Press.Running", path: ["Press", "Running"], type: "bool", value: true },
  { item: "Press.Tool", path: ["Press", "Tool"], type: "string", value: 'T-118 "Größe 4"\n' },
  { item: "Press.Profile", path: ["Press", "Profile"], type: "float64[4]", value: [0, 12.5, 80, 12.5] },
  { item: "Press.Grid", path: ["Press", "Grid"], type: "int16[2x3]", value: [1, 2, 3, 4, 5, 6] },
  { item: "[Line 1]Speed,α", path: ["Line 1", "Speed"], type: "float64", value: 0.1 },
];

/** The gateway of the tests, with what they change of the server behind it. */
export interface GatewaySimulator extends Simulator {
  readonly plant: SimulatedPlant;
  readonly server: SimulatedServer;
  /** Loads another project: items are looked up again. */
  download(): void;
  /** Ends all connections. */
  drop(how?: "fin" | "rst"): void;
}

/** The reference gateway with a server of its own; it shares no line with the driver. */
export async function startSimulator({ port = 0, host = "127.0.0.1" }: Listening = {}): Promise<GatewaySimulator> {
  const plant = new SimulatedPlant();
  const server = plant.add({ protocol: "OPC_DA", server_name: "Plant.OpcDa.1" }, new SimulatedServer("Plant OPC DA server", ITEMS));
  const gateway = await Gateway.start({ backend: plant, host, port, maxConnections: 200 });
  let projects = 1;
  return {
    port: gateway.port,
    plant,
    server,
    details: (at, through) => ({
      type: "vendor_gateway",
      host: at,
      port: through,
      protocol_details: { protocol: "OPC_DA", server_name: "Plant.OpcDa.1" },
    }),
    variables: ITEMS.map(({ item, type, value }) => ({ address: item, type, value })),
    missing: { address: "Press.Nothing", type: "float64" },
    malformed: ["", " ", "Press\nForce", "Press\0", "\u0085"],
    connections: () => gateway.connections,
    download() {
      server.epoch = `project ${++projects}`;
    },
    drop: (how) => gateway.drop(how),
    close: () => gateway.close(),
  };
}
