import { startPress } from "../../../simulators/machines/press.ts";

/** The demo's press as a process, for a network of its own; it ends with its standard input. */
const press = await startPress({ port: Number(process.argv[2]) });
console.log(`${press.name} at ${press.port()}`);
process.stdin.resume().once("end", () => process.exit(0));
