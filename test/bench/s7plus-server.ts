import { S7Memory, startS7Plc } from "../../drivers/s7/simulator.ts";
import { largeProgram, startS7PlusPlc } from "../../drivers/s7plus/simulator.ts";

/** A simulated CPU in a process of its own, read with s7 or with s7plus: `s7 COUNT BLOCKS STEP` or `s7plus COUNT`. It prints its port. */
const [kind = "", ...numbers] = process.argv.slice(2);
const [count = 1, blocks = 1, step = 4] = numbers.map(Number);

async function startS7(): Promise<number> {
  const memory = new S7Memory();
  const inBlock = count / blocks;
  for (let block = 1; block <= blocks; block++) memory.create(`DB${block}`, inBlock * step);
  for (let i = 0; i < count; i++) memory.put(`DB${Math.floor(i / inBlock) + 1}`, (i % inBlock) * step, "DINT", i);
  return (await startS7Plc({ memory })).port;
}

console.log(await (kind === "s7" ? startS7() : startS7PlusPlc({ program: largeProgram(count) }).then(({ port }) => port)));
