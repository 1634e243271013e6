import { type ProgramDeclaration, type S7PlusProgram, startS7PlusPlc } from "../../drivers/s7plus/simulator.ts";
import type { DemoMachine } from "./machine.ts";
import { type Place, switchable } from "./switchable.ts";

/** Structures, an array and a tag without a block: what a program of an S7-1500 has. */
const PROGRAM: ProgramDeclaration = {
  structures: {
    Gripper: [
      { name: "closed", type: "BOOL" },
      { name: "force", type: "REAL" },
    ],
  },
  blocks: [
    {
      number: 1,
      name: "Palletizer",
      fields: [
        { name: "order", type: "STRING[20]", value: "Order 4711" },
        { name: "boxes", type: "UDINT" },
        { name: "layer", type: "INT", bounds: [[1, 4]] },
        { name: "gripper", type: "Gripper" },
        { name: "started", type: "DTL", value: "2026-11-22T06:00:00.000000000" },
      ],
    },
  ],
  tags: { M: [{ name: "Air pressure", type: "REAL" }] },
};
const [BOX_MS, BOXES_IN_LAYER, LAYERS] = [1500, 12, 4];

/** Before each read: a box is set every 1.5 s, layer by layer, and the gripper opens and closes. */
function update(program: S7PlusProgram, ms: number): void {
  const boxes = Math.floor(ms / BOX_MS);
  const onPallet = boxes % (BOXES_IN_LAYER * LAYERS);
  program.put('"Palletizer".boxes', 48_000 + boxes);
  for (let layer = 0; layer < LAYERS; layer++)
    program.put(`"Palletizer".layer[${layer + 1}]`, Math.max(0, Math.min(BOXES_IN_LAYER, onPallet - layer * BOXES_IN_LAYER)));
  const isClosed = ms % BOX_MS < BOX_MS / 2;
  program.put('"Palletizer".gripper.closed', isClosed);
  program.put('"Palletizer".gripper.force', isClosed ? 38 + 2 * Math.sin(ms / 700) : 0);
  program.put('"Air pressure"', 6 + 0.2 * Math.sin(ms / 4000));
}

/** A palletizer with an S7-1500 that is read by symbols, at this place. */
export async function startPalletizer(at: Place): Promise<DemoMachine> {
  const { first, current: _current, ...power } = await switchable(at, (place) => startS7PlusPlc({ ...place, program: PROGRAM, update }));
  return {
    name: "palletizer-6",
    readoutIntervalS: 1,
    details: { type: "s7plus", host: "127.0.0.1", port: first.port, destination_tsap: "SIMATIC-ROOT-HMI", password: { type: "none" } },
    variables: [
      { name: "order", address: '"Palletizer".order', type: "STRING[20]", unit: null },
      { name: "boxes", address: '"Palletizer".boxes', type: "UDINT", unit: null },
      { name: "layers", address: '"Palletizer".layer', type: "INT[4]", unit: null },
      { name: "gripper closed", address: '"Palletizer".gripper.closed', type: "BOOL", unit: null },
      { name: "gripper force", address: '"Palletizer".gripper.force', type: "REAL", unit: "N" },
      { name: "started", address: '"Palletizer".started', type: "DTL", unit: null },
      { name: "air pressure", address: '"Air pressure"', type: "REAL", unit: "bar" },
    ],
    ...power,
  };
}
