import { LogixProgram, startCipDevice } from "../../drivers/vendor_a/simulator.ts";
import { benchTags } from "./cip-tags.ts";

/** The controller of the CIP bench, in a process of its own. Prints its port. */
const program = new LogixProgram();
for (const { name, value } of benchTags("all")) program.tag(name, "DINT", value);
const device = await startCipDevice({ program });
console.log(device.port);
