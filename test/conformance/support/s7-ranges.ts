import { S7Memory, startS7Plc } from "../../../drivers/s7/simulator.ts";
import type { RangeDevice } from "../subjects.ts";

const BLOCK = "DB1";
const IN_A_RUN = 3;
const STEP_BYTES = 4;
/** Far enough apart that the fresh plan reads each run as an item of its own. */
const RUN_BYTES = 200;

/** Words at bytes 2, 6, 10, then 202, 206, 210, and so on: a run is one item, and all runs are one job. */
export async function startS7Ranges(values: readonly number[]): Promise<RangeDevice> {
  const byteOf = (i: number) => 2 + Math.floor(i / IN_A_RUN) * RUN_BYTES + (i % IN_A_RUN) * STEP_BYTES;
  const memory = new S7Memory();
  memory.create(BLOCK, byteOf(values.length));
  for (const [i, value] of values.entries()) memory.put(BLOCK, byteOf(i), "WORD", value);
  const plc = await startS7Plc({ memory });
  return {
    port: plc.port,
    variables: values.map((value, i) => ({ address: `${BLOCK}.DBW${byteOf(i)}`, type: "uint16", value })),
    lack: (before) => memory.holes.set(BLOCK, new Set(before.map((i) => byteOf(i) - 1))),
    close: () => plc.close(),
  };
}
