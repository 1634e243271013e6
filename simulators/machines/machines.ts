import { startCapper } from "./capper.ts";
import { startFiller } from "./filler.ts";
import type { DemoMachine } from "./machine.ts";
import { startMixer } from "./mixer.ts";
import { startMoulder } from "./moulder.ts";
import { startPacker } from "./packer.ts";
import { startPalletizer } from "./palletizer.ts";
import { conveyor, machine, oven, startPress } from "./press.ts";
import { startRobot } from "./robot.ts";

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
