import dgram, { type RemoteInfo } from "node:dgram";
import type { AddressInfo } from "node:net";

/** What a name server says of a name: addresses, that there is none (3), an error of its own (2), or nothing at all. */
export type NameAnswer = readonly string[] | 2 | 3 | "silent";
/** The same for questions about IPv4 (A) and IPv6 (AAAA) each, the latter in full form, so many ms after the question. */
export interface NameAnswers {
  readonly v4: NameAnswer;
  readonly v6: NameAnswer;
  readonly v4AfterMs?: number;
  readonly v6AfterMs?: number;
}

export interface NameServer {
  /** `address:port`. */
  readonly at: string;
  /** Names in lower case; what is not in it does not exist, a list has no IPv6 addresses. */
  readonly names: Map<string, NameAnswer | NameAnswers>;
  /** Names asked for so far, IPv4 questions only. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** A name server on loopback (RFC 1035, 4.1). */
export async function startNameServer(): Promise<NameServer> {
  const names = new Map<string, NameAnswer | NameAnswers>();
  const asked: string[] = [];
  let isOpen = true;
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
    const known = names.get(name) ?? 3;
    const both: NameAnswers =
      typeof known === "object" && "v4" in known ? known : { v4: known, v6: typeof known === "object" ? [] : known };
    const answer = isV4 ? both.v4 : both.v6;
    if (answer === "silent") return;
    const addresses = typeof answer === "object" ? answer : [];
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(0x8180 | (typeof answer === "number" ? answer : 0), 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(addresses.length, 6);
    head.writeUInt32BE(0, 8);
    const records = addresses.map((address) => {
      const bytes = isV4 ? Buffer.from(address.split(".").map(Number)) : Buffer.from(address.replaceAll(":", ""), "hex");
      return Buffer.concat([Buffer.from([0xc0, 0x0c, 0, isV4 ? 1 : 28, 0, 1, 0, 0, 0, 5, 0, bytes.length]), bytes]);
    });
    const message = Buffer.concat([head, query.subarray(12, end), ...records]);
    setTimeout(() => isOpen && socket.send(message, from.port, from.address, () => {}), (isV4 ? both.v4AfterMs : both.v6AfterMs) ?? 0);
  });
  await new Promise<void>((ready) => socket.bind(0, "127.0.0.1", ready));
  return {
    at: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    names,
    asked,
    close: () =>
      new Promise((done) => {
        isOpen = false;
        socket.close(() => done());
      }),
  };
}
