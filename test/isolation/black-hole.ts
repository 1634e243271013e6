import net, { type AddressInfo } from "node:net";
import { parentPort } from "node:worker_threads";

/**
 * A worker that listens and never accepts: once its backlog is full, the kernel drops every further SYN. Posts its port, then stands still.
 */
const server = net.createServer();
server.listen({ host: "127.0.0.1", port: 0, backlog: 1 }, () => {
  parentPort?.postMessage((server.address() as AddressInfo).port);
  setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
});
