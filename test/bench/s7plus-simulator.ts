import { S7Memory, startS7Plc } from "../../drivers/s7/simulator.ts";
import { largeProgram, startS7PlusPlc } from "../../drivers/s7plus/simulator.ts";

/** A simulated CPU of the S7plus bench, in a process of its own. Arguments: `s7` or `s7plus`, how many numbers it holds. Prints its port. */
const [kind = "", countText = "1"] = process.argv.slice(2);
const count = Number(countText);
/** Too far apart to be read as one range, as symbols are each an item of their own. */
const STEP = 64;

async function startS7(): Promise<number> {
  const memory = new S7Memory();
  memory.create("DB1", count * STEP);
  for (let i = 0; i < count; i++) memory.put("DB1", i * STEP, "DINT", i);
  return (await startS7Plc({ memory })).port;
}

async function startS7Plus(): Promise<number> {
  return (await startS7PlusPlc({ program: largeProgram(count) })).port;
}

console.log(await (kind === "s7" ? startS7() : startS7Plus()));
