import { LogixProgram, STATUS, startCipDevice } from "../../drivers/vendor_a/simulator.ts";
import type { DemoMachine } from "./machine.ts";
import { type Place, switchable } from "./switchable.ts";

const SECONDS_PER_BOX = 5;

function program(): LogixProgram {
  const made = new LogixProgram();
  made.structure("Axis", [
    ["Position", "REAL"],
    ["Torque", "REAL"],
    ["Enabled", "BOOL"],
    ["Fault", "BOOL"],
  ]);
  made.tag("Product", "STRING", "Lemonade 7");
  made.tag("Boxes", "DINT", 0);
  made.tag("Temperatures", "REAL[4]");
  made.tag("Gripper", "Axis");
  made.tag("Seal", "TIMER", { PRE: SECONDS_PER_BOX * 1000 });
  made.program("MainProgram");
  made.tag("Speed", "INT", 0, { program: "MainProgram" });
  return made;
}

/** Before each message: boxes are packed, the gripper moves, and a timer runs with each box. */
function update(program: LogixProgram, ms: number): void {
  const isRunning = Math.floor(ms / 8000) % 5 !== 4;
  const box = ms % (SECONDS_PER_BOX * 1000);
  program.put("Boxes", 31_200 + Math.floor(ms / (SECONDS_PER_BOX * 1000)));
  program.put(
    "Temperatures",
    [0, 1, 2, 3].map((i) => 180 + 2 * i + Math.sin(ms / 3000 + i)),
  );
  program.put("Gripper", { Position: 120 + 80 * Math.sin(ms / 800), Torque: 4 + Math.sin(ms / 350), Enabled: isRunning });
  program.put("Seal", { ACC: Math.floor(box), EN: isRunning, TT: isRunning });
  program.put("Program:MainProgram.Speed", isRunning ? 12 : 0);
}

/** A packer with a CompactLogix, at this place. */
export async function startPacker(at: Place): Promise<DemoMachine> {
  const { first, current, ...power } = await switchable(at, (place) => startCipDevice({ ...place, program: program(), update }));
  return {
    name: "packer-7",
    readoutIntervalS: 1,
    details: { type: "vendor_a", host: "127.0.0.1", port: first.port },
    variables: [
      { name: "boxes", address: "Boxes", type: "DINT", unit: null },
      { name: "temperatures", address: "Temperatures", type: "REAL[4]", unit: "°C" },
      { name: "gripper", address: "Gripper.Position", type: "REAL", unit: "mm" },
      { name: "enabled", address: "Gripper.Enabled", type: "BOOL", unit: null },
      { name: "sealing", address: "Seal.ACC", type: "DINT", unit: "ms" },
      { name: "product", address: "Product", type: "STRING", unit: null },
      { name: "speed", address: "Program:MainProgram.Speed", type: "INT", unit: "1/min" },
    ],
    refuseReads(is) {
      const device = current();
      if (device) device.cpu.refusesAll = is ? STATUS.privilege : undefined;
    },
    ...power,
  };
}
