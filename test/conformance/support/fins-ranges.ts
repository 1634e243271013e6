import { FinsMemory, startFinsPlc } from "../../../drivers/fins/simulator.ts";
import type { RangeDevice } from "../subjects.ts";

/** Every second word: near enough for the fresh plan to read all of them as one range. */
const STEP = 2;

/** Words D1, D3, D5 and so on; what is lacking is the word before. */
export async function startFinsRanges(values: readonly number[]): Promise<RangeDevice> {
  const wordOf = (i: number) => 1 + i * STEP;
  const memory = new FinsMemory();
  memory.create("D", wordOf(values.length));
  for (const [i, value] of values.entries()) memory.put("D", wordOf(i), "UINT", value);
  const plc = await startFinsPlc({ memory });
  return {
    port: plc.port,
    variables: values.map((value, i) => ({ address: `D${wordOf(i)}`, type: "uint16", value })),
    lack: (before) => memory.holes.set("D", new Set(before.map((i) => wordOf(i) - 1))),
    close: () => plc.close(),
  };
}
