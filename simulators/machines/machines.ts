import {
  type ModbusPlantOptions,
  type PlantUnit,
  put,
  putChanging,
  registersOf,
  startModbusPlant,
  type Table,
} from "../../drivers/modbus_tcp/simulator.ts";
import { startCapper } from "./capper.ts";
import { startFiller } from "./filler.ts";
import type { DemoMachine } from "./machine.ts";
import { startMixer } from "./mixer.ts";
import { startMoulder } from "./moulder.ts";
import { startPacker } from "./packer.ts";
import { startPalletizer } from "./palletizer.ts";
import { startRobot } from "./robot.ts";
import { type Place, switchable } from "./switchable.ts";

const wave = (periodS: number, low: number, high: number) => (ms: number) =>
  low + (high - low) * (0.5 + 0.5 * Math.sin((ms / 1000 / periodS) * 2 * Math.PI));

function press(): PlantUnit {
  const holding: Table = new Map();
  const coil: Table = new Map();
  putChanging(holding, 0, "float32", wave(20, 180, 195));
  putChanging(holding, 2, "uint16", wave(7, 80, 140));
  putChanging(holding, 10, "uint32", (ms) => 120_000 + Math.floor(ms / 1200));
  put(holding, 12, registersOf("uint64", 9_007_199_254_740_993n));
  put(coil, 0, [1, (ms) => (Math.floor(ms / 5000) % 4 === 3 ? 1 : 0)]);
  return { holding, coil };
}

function oven(): PlantUnit {
  const input: Table = new Map();
  putChanging(input, 0, "float32", wave(60, 838, 851));
  putChanging(input, 2, "float32", wave(45, 848, 860));
  putChanging(input, 4, "int16", wave(15, -40, 25));
  return { input };
}

function conveyor(): PlantUnit {
  const holding: Table = new Map();
  const discrete: Table = new Map();
  putChanging(holding, 100, "uint16", wave(5, 900, 1100));
  putChanging(holding, 101, "uint32", (ms) => Math.floor(ms / 250));
  put(discrete, 0, [(ms) => Math.floor(ms / 400) % 2, (ms) => Math.floor(ms / 900) % 2]);
  return { holding, discrete };
}

/** Where the unit of a machine moves that has another unit identifier than it should. */
const OTHER_UNIT = 7;

async function machine(
  at: Place,
  name: string,
  unit: PlantUnit,
  ephemeral: boolean,
  readoutIntervalS: number,
  variables: readonly (readonly [name: string, address: string, type: string, unit: string | null])[],
): Promise<DemoMachine> {
  const units = new Map([[1, unit]]);
  let isLocked = false;
  const misbehave: ModbusPlantOptions["misbehave"] = () => (isLocked ? { exception: 1 } : undefined);
  const { first, current: _current, ...power } = await switchable(at, (place) => startModbusPlant({ ...place, units, misbehave }));
  return {
    name,
    readoutIntervalS,
    details: { type: "modbus_tcp", host: "127.0.0.1", port: first.port, ephemeral_connections: ephemeral },
    variables: variables.map(([variable, address, type, measured]) => ({ name: variable, address, type, unit: measured })),
    refuseReads(is) {
      isLocked = is;
    },
    moveUnit(is) {
      units.clear();
      units.set(is ? OTHER_UNIT : 1, unit);
    },
    ...power,
  };
}

/** A press with a Modbus controller. */
export const startPress = (at: Place): Promise<DemoMachine> =>
  machine(at, "press-1", press(), false, 1, [
    ["temperature", "holding:0", "float32", "°C"],
    ["pressure", "holding:2", "uint16", "bar"],
    ["strokes", "holding:10", "uint32", null],
    ["energy", "holding:12", "uint64", "Wh"],
    ["running", "coil:0", "bool", null],
    ["tool change", "coil:1", "bool", null],
  ]);

const MACHINES = ["press", "oven", "conveyor", "robot", "mixer", "palletizer", "packer", "filler", "capper", "moulder"] as const;
/** Of 127.0.0.1; 0: a free one. */
export type MachinePorts = Readonly<Record<(typeof MACHINES)[number], number>>;

/** The conveyor has one variable that its controller does not know: it costs itself only. */
export function startMachines(at: MachinePorts): Promise<readonly DemoMachine[]> {
  return Promise.all([
    startPress({ port: at.press }),
    machine({ port: at.oven }, "oven-2", oven(), true, 1, [
      ["zone 1", "input:0", "float32", "°C"],
      ["zone 2", "input:2", "float32", "°C"],
      ["draught", "input:4", "int16", "Pa"],
    ]),
    machine({ port: at.conveyor }, "conveyor-3", conveyor(), false, 2, [
      ["speed", "holding:100", "uint16", "mm/s"],
      ["pieces", "holding:101", "uint32", null],
      ["jammed", "discrete:0", "bool", null],
      ["not there", "holding:4000", "uint16", null],
    ]),
    startRobot({ port: at.robot }),
    startMixer({ port: at.mixer }),
    startPalletizer({ port: at.palletizer }),
    startPacker({ port: at.packer }),
    startFiller({ port: at.filler }),
    startCapper({ port: at.capper }),
    startMoulder({ port: at.moulder }),
  ]);
}
