import dgram from "node:dgram";
import net, { type AddressInfo } from "node:net";
import { RecordedConnection, udpPacket } from "./capture-file.ts";

/** Stands between a client and a device, and keeps what passes as the packets of a capture in which the device has `devicePort`. */
export interface RecordingProxy {
  readonly port: number;
  readonly packets: readonly Buffer[];
  close(): Promise<void>;
}

export async function recordTcp(targetPort: number, devicePort: number): Promise<RecordingProxy> {
  const packets: Buffer[] = [];
  const sockets = new Set<net.Socket>();
  let clients = 0;
  const server = net.createServer((near) => {
    const far = net.connect({ port: targetPort, host: "127.0.0.1" });
    const recorded = new RecordedConnection(packets, devicePort, 50_000 + clients++);
    for (const [one, other, who] of [
      [near, far, "client"],
      [far, near, "device"],
    ] as const) {
      sockets.add(one);
      one.on("error", () => {});
      one.on("close", () => other.destroy());
      one.on("data", (bytes) => {
        recorded.says(who, bytes);
        other.write(bytes);
      });
    }
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    port: (server.address() as AddressInfo).port,
    packets,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
}

export async function recordUdp(targetPort: number, devicePort: number): Promise<RecordingProxy> {
  const packets: Buffer[] = [];
  const near = dgram.createSocket("udp4");
  const far = dgram.createSocket("udp4");
  const client = { from: "10.0.0.1", to: "10.0.0.2", fromPort: 50_000, toPort: devicePort };
  const device = { from: "10.0.0.2", to: "10.0.0.1", fromPort: devicePort, toPort: 50_000 };
  let clientPort = 0;
  near.on("message", (payload, { port }) => {
    clientPort = port;
    packets.push(udpPacket({ ...client, payload }));
    far.send(payload, targetPort, "127.0.0.1");
  });
  far.on("message", (payload) => {
    packets.push(udpPacket({ ...device, payload }));
    near.send(payload, clientPort, "127.0.0.1");
  });
  await Promise.all([near, far].map((socket) => new Promise<void>((ready) => socket.bind(0, "127.0.0.1", ready))));
  return {
    port: near.address().port,
    packets,
    close: async () => {
      await Promise.all([near, far].map((socket) => new Promise<void>((done) => socket.close(() => done()))));
    },
  };
}
