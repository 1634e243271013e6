import { DataType } from "node-opcua-client";
import { OPCUAServer } from "node-opcua-server";

/**
 * What a person would write in an afternoon with node-opcua: a server with variables that change all at once. Arguments: how many, every
 * so many ms. Started as a child process: says where it is, and its CPU time when asked.
 */
const [count = 0, everyMs = 0] = process.argv.slice(2).map(Number);

const server = new OPCUAServer({ port: 0, hostname: "127.0.0.1", host: "127.0.0.1", serverCapabilities: { maxSessions: 10 } });
await server.initialize();
const { addressSpace } = server.engine;
if (!addressSpace) throw new Error("no address space");
const namespace = addressSpace.getOwnNamespace();
const folder = namespace.addFolder(addressSpace.rootFolder.objects, { browseName: "Machine" });
const variables = Array.from({ length: count }, (_, i) =>
  namespace.addVariable({
    organizedBy: folder,
    browseName: `v${i}`,
    dataType: DataType.Double,
    minimumSamplingInterval: 0,
    nodeId: `s=v${i}`,
  }),
);
await server.start();
let round = 0;
setInterval(() => {
  round++;
  for (let i = 0; i < variables.length; i++) variables[i]?.setValueFromSource({ dataType: DataType.Double, value: round + i });
}, everyMs);
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpuUs: user + system, written: round * count });
});
process.send?.({ url: server.getEndpointUrl(), nodeIds: variables.map(({ nodeId }) => nodeId.toString()) });
