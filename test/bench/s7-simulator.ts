import { S7Memory, startS7Plc } from "../../drivers/s7/simulator.ts";

/** Our own simulator in the place of snap7, with the same values and sizes. Arguments as there. */
const [port = 0, blocks = 1, values = 1, step = 4] = process.argv.slice(3).map(Number);
const memory = new S7Memory();
for (let block = 1; block <= blocks; block++) {
  memory.create(`DB${block}`, values * step);
  for (let i = 0; i < values; i++) memory.put(`DB${block}`, i * step, "REAL", block * 1000 + i);
}
const plc = await startS7Plc({ port, memory });
plc.pduBytes = 240;
console.log("ready");
