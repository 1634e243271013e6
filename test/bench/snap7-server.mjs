import { createRequire } from "node:module";

/**
 * An S7 server that is none of ours: snap7, through npm's node-snap7. Runs under the Node that it was installed with.
 * Arguments: folder of the installation, port, blocks, values in each, bytes from one value to the next. Value i of block b is b * 1000 + i.
 */
const [folder = "", ...numbers] = process.argv.slice(2);
const [port = 0, blocks = 1, values = 1, step = 4] = numbers.map(Number);
const { S7Server } = createRequire(`${folder}/`)("node-snap7");

const PDU_BYTES = 240;
const server = new S7Server();
// Before it starts: otherwise it takes what it is asked for.
server.SetParam(server.PDURequest, PDU_BYTES);
server.SetParam(server.LocalPort, port);
// It keeps a list of events, one for each item.
server.SetEventMask(0);
for (let block = 1; block <= blocks; block++) {
  const bytes = Buffer.alloc(values * step);
  for (let i = 0; i < values; i++) bytes.writeFloatBE(block * 1000 + i, i * step);
  server.RegisterArea(server.srvAreaDB, block, bytes);
}
if (!server.StartTo("127.0.0.1")) throw new Error(server.ErrorText(server.LastError()));
console.log("ready");
// Nothing else keeps the process.
setInterval(() => {}, 60_000);
