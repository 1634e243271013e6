import {
  type ModbusPlantOptions,
  type PlantUnit,
  put,
  putChanging,
  registersOf,
  startModbusPlant,
  type Table,
} from "../../drivers/modbus_tcp/simulator.ts";
import type { DemoMachine } from "./machine.ts";
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

export function oven(): PlantUnit {
  const input: Table = new Map();
  putChanging(input, 0, "float32", wave(60, 838, 851));
  putChanging(input, 2, "float32", wave(45, 848, 860));
  putChanging(input, 4, "int16", wave(15, -40, 25));
  return { input };
}

export function conveyor(): PlantUnit {
  const holding: Table = new Map();
  const discrete: Table = new Map();
  putChanging(holding, 100, "uint16", wave(5, 900, 1100));
  putChanging(holding, 101, "uint32", (ms) => Math.floor(ms / 250));
  put(discrete, 0, [(ms) => Math.floor(ms / 400) % 2, (ms) => Math.floor(ms / 900) % 2]);
  return { holding, discrete };
}

/** Where the unit of a machine moves that has another unit identifier than it should. */
const OTHER_UNIT = 7;
/** A device that refuses larger requests than the largest value takes. */
const SHORT_REGISTERS = 4;
/** A device that takes one request at a time takes so long for it. */
const SINGLE_MS = 5;

/** A machine with one unit, whose registers and coils are these. */
export async function machine(
  at: Place,
  name: string,
  unit: PlantUnit,
  ephemeral: boolean,
  readoutIntervalS: number,
  variables: readonly (readonly [name: string, address: string, type: string, unit: string | null])[],
): Promise<DemoMachine> {
  const units = new Map([[1, unit]]);
  let isLocked = false;
  let isShort = false;
  const misbehave: ModbusPlantOptions["misbehave"] = ({ count, functionCode }) => {
    if (isLocked) return { exception: 1 };
    return isShort && functionCode > 2 && count > SHORT_REGISTERS ? { exception: 3 } : undefined;
  };
  let isSingle = false;
  const oneAtATimeMs = () => (isSingle ? SINGLE_MS : undefined);
  const {
    first,
    current: _current,
    ...power
  } = await switchable(at, (place) => startModbusPlant({ ...place, units, misbehave, oneAtATimeMs }));
  return {
    name,
    readoutIntervalS,
    details: { type: "modbus_tcp", host: "127.0.0.1", port: first.port, ephemeral_connections: ephemeral },
    variables: variables.map(([variable, address, type, measured]) => ({ name: variable, address, type, unit: measured })),
    refuseReads(is) {
      isLocked = is;
    },
    shortenReads(is) {
      isShort = is;
    },
    takesOne(is) {
      isSingle = is;
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
