import dgram, { type RemoteInfo } from "node:dgram";
import type { AddressInfo } from "node:net";

/** What a name server says of a name: IPv4 addresses, that there is none (3), an error of its own (2), or nothing at all. */
export type NameAnswer = readonly string[] | 2 | 3 | "silent";

export interface NameServer {
  /** `address:port`. */
  readonly at: string;
  /** Names in lower case; what is not in it does not exist. */
  readonly names: Map<string, NameAnswer>;
  /** Names asked for so far, IPv4 questions only. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** A name server on loopback (RFC 1035, 4.1). */
export async function startNameServer(): Promise<NameServer> {
  const names = new Map<string, NameAnswer>();
  const asked: string[] = [];
  const socket = dgram.createSocket("udp4");
  socket.on("error", () => {});
  socket.on("message", (query: Buffer, from: RemoteInfo) => {
    let at = 12;
    const labels: string[] = [];
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString("latin1", at + 1, at + 1 + length));
      at += length + 1;
    }
    const end = at + 5;
    const isV4 = query.readUInt16BE(at + 1) === 1;
    const name = labels.join(".").toLowerCase();
    if (isV4) asked.push(name);
    const answer = names.get(name) ?? 3;
    if (answer === "silent") return;
    const addresses = isV4 && typeof answer === "object" ? answer : [];
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(0x8180 | (typeof answer === "number" ? answer : 0), 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(addresses.length, 6);
    head.writeUInt32BE(0, 8);
    const records = addresses.map((address) => Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, ...address.split(".").map(Number)]));
    socket.send(Buffer.concat([head, query.subarray(12, end), ...records]), from.port, from.address);
  });
  await new Promise<void>((ready) => socket.bind(0, "127.0.0.1", ready));
  return {
    at: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    names,
    asked,
    close: () => new Promise((done) => socket.close(() => done())),
  };
}
