import net, { type AddressInfo } from "node:net";
import { Worker } from "node:worker_threads";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";

/**
 * The devices of the isolation test, in a process of their own: GOOD healthy ones, and one of each that misbehaves by itself. Prints their
 * ports as JSON. Arguments: number of healthy devices.
 */
const [good = 1] = process.argv.slice(2).map(Number);
const holding = new Map(Array.from({ length: 20 }, (_, i) => [i, i] as const));
const units = new Map([[1, { holding }]]);

async function listen(onSocket: (socket: net.Socket) => void): Promise<number> {
  const server = net.createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => {});
    onSocket(socket);
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return (server.address() as AddressInfo).port;
}
const plant = async (odd?: Parameters<typeof startModbusPlant>[0]["misbehave"]) =>
  (await startModbusPlant({ units, ...(odd && { misbehave: odd }) })).port;

/** Connections that fill the backlog; they stay. */
async function blackHole(): Promise<number> {
  const worker = new Worker(new URL("./black-hole.ts", import.meta.url));
  const port = await new Promise<number>((ready) => worker.once("message", ready));
  for (let i = 0; i < 8; i++) net.connect(port, "127.0.0.1").on("error", () => {});
  return port;
}

const ports = {
  blackHole: await blackHole(),
  good: await Promise.all(Array.from({ length: good }, () => plant())),
  silent: await plant(() => ({ silent: true })),
  reset: await plant(() => ({ hangUp: "rst" })),
  closes: await plant(() => ({ hangUp: "fin" })),
  refuses: await plant(() => ({ exception: 2 })),
  busy: await plant(() => ({ exception: 6 })),
  noUnit: await plant(() => ({ exception: 11 })),
  slow: await listen((socket) => {
    const answer = Buffer.from([0, 1, 0, 0, 0, 43, 1, 3, 40]);
    let at = 0;
    const timer = setInterval(() => socket.write(answer.subarray(at % answer.length, (at++ % answer.length) + 1)), 1000);
    socket.on("close", () => clearInterval(timer));
    socket.resume();
  }),
  garbage: await listen((socket) => {
    const chunk = Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7919) & 255));
    const timer = setInterval(() => socket.write(chunk), 50);
    socket.on("close", () => clearInterval(timer));
    socket.resume();
  }),
  resetsAtOnce: await listen((socket) => void socket.resetAndDestroy()),
};
console.log(JSON.stringify(ports));
