import { startOpcuaSimulator } from "../../drivers/opcua/simulator.ts";

/** A machine with many doubles for the benches. Argument: how many. Started as a child process: says where it is and what it has. */
const [bulk = 0] = process.argv.slice(2).map(Number);
const simulator = await startOpcuaSimulator({ bulk, modes: ["None", "SignAndEncrypt"], policies: ["None", "Basic256Sha256"] });
process.once("SIGTERM", () => void simulator.close().finally(() => process.exit()));
process.send?.({
  port: simulator.port,
  url: simulator.endpointUrl,
  nodeIds: Array.from({ length: bulk }, (_, i) => `ns=${simulator.plantIndex};s=Bulk.${i}`),
});
