import net, { type AddressInfo } from "node:net";

/** What a serial gateway does with a request to a unit that does not answer. */
export type DeadUnits = "silent" | "gateway exception" | "silent, one request at a time" | "gateway exception, one request at a time";

export interface Gateway {
  readonly port: number;
  /** Units that do not answer; can be changed while it runs. */
  readonly dead: Set<number>;
  close(): Promise<void>;
}

/** What a request to a living unit takes on the line. */
const LINE_MS = 5;
/** What the gateway itself waits for a unit. */
const UNIT_WAIT_MS = 1000;
const GATEWAY_TARGET_FAILED = 11;

/**
 * A Modbus gateway with units behind it, each with registers that read as their own address. One that serves one request at a time
 * is busy with a dead unit for a second, whoever waits. Written without the driver's frame code.
 */
export async function startGateway(kind: DeadUnits): Promise<Gateway> {
  const dead = new Set<number>();
  const isSerial = kind.endsWith("one request at a time");
  const saysSo = kind.startsWith("gateway exception");
  const sockets = new Set<net.Socket>();
  let line: Promise<void> = Promise.resolve();
  const later = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));

  const answer = async (socket: net.Socket, frame: Buffer): Promise<void> => {
    const unit = frame.readUInt8(6);
    const isDead = dead.has(unit);
    await later(isDead ? UNIT_WAIT_MS : LINE_MS);
    if (socket.destroyed || (isDead && !saysSo)) return;
    const count = frame.readUInt16BE(10);
    const start = frame.readUInt16BE(8);
    const data = Array.from({ length: count }, (_, i) => [(start + i) >> 8, (start + i) & 0xff]).flat();
    const body = isDead ? [frame.readUInt8(7) | 0x80, GATEWAY_TARGET_FAILED] : [frame.readUInt8(7), data.length, ...data];
    socket.write(Buffer.from([...frame.subarray(0, 4), 0, body.length + 1, unit, ...body]));
  };

  const server = net.createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    let pending = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      for (; pending.length >= 12; pending = pending.subarray(12)) {
        const frame = Buffer.from(pending.subarray(0, 12));
        if (isSerial) line = line.then(() => answer(socket, frame));
        else void answer(socket, frame);
      }
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    port: (server.address() as AddressInfo).port,
    dead,
    close: () =>
      new Promise((done) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => done());
      }),
  };
}
