import { FinsMemory, startFinsPlc } from "../../drivers/fins/simulator.ts";
import { valueAt } from "./fins-places.ts";

/** The controller of the FINS bench, in a process of its own: D is full. Prints its port. */
const memory = new FinsMemory();
const words = memory.create("D", 32_768);
for (let i = 0; i < words.length; i++) words[i] = valueAt(i);
const plc = await startFinsPlc({ memory });
console.log(plc.port);
