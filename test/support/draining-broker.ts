import { once } from "node:events";
import { createServer, type Socket } from "node:net";

/** A broker that takes every PUBLISH of QoS 1 and keeps nothing of it, whatever its size. */
export async function startDrainingBroker(port: number): Promise<{ readonly stop: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    let head: Buffer = Buffer.alloc(0);
    let toSkip = 0;
    socket.on("data", (chunk) => {
      let rest: Buffer = chunk;
      while (rest.length > 0) {
        const skipped = Math.min(toSkip, rest.length);
        toSkip -= skipped;
        rest = rest.subarray(skipped);
        if (toSkip > 0 || rest.length === 0) return;
        head = Buffer.concat([head, rest]);
        const packet = beginningOf(head);
        if (!packet) return;
        if (packet.answer) socket.write(packet.answer);
        rest = head.subarray(Math.min(packet.bytes, head.length));
        toSkip = Math.max(0, packet.bytes - head.length);
        head = Buffer.alloc(0);
      }
    });
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** MQTT 5.0, 2.1 and 3: how long a packet is, and what is answered, as soon as its beginning says so. */
function beginningOf(head: Buffer): { readonly bytes: number; readonly answer?: Buffer } | undefined {
  let length = 0;
  for (let i = 1; i < head.length && i < 5; i++) {
    const byte = head.readUInt8(i);
    length += (byte & 0x7f) << (7 * (i - 1));
    if (byte & 0x80) continue;
    const at = i + 1;
    const bytes = at + length;
    switch (head.readUInt8(0) >> 4) {
      case 1:
        return { bytes, answer: Buffer.from([0x20, 3, 0, 0, 0]) };
      case 3: {
        if (head.length < at + 2) return undefined;
        const idAt = at + 2 + head.readUInt16BE(at);
        if (head.length < idAt + 2) return undefined;
        const isAnswered = (head.readUInt8(0) & 6) !== 0;
        return { bytes, ...(isAnswered && { answer: Buffer.from([0x40, 2, head.readUInt8(idAt), head.readUInt8(idAt + 1)]) }) };
      }
      case 12:
        return { bytes, answer: Buffer.from([0xd0, 0]) };
      default:
        return { bytes };
    }
  }
  return undefined;
}
