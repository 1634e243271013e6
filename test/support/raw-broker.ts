import { once } from "node:events";
import { createServer, type Socket } from "node:net";

export interface RawPacket {
  /** MQTT 5.0, 2.1.2: 1 CONNECT, 3 PUBLISH, 12 PINGREQ, 14 DISCONNECT. */
  readonly type: number;
  readonly flags: number;
  readonly body: Buffer;
}

/** A broker's side of MQTT, byte by byte: a test says what is answered. */
export interface RawBroker {
  readonly port: number;
  readonly packets: readonly RawPacket[];
  readonly sockets: readonly Socket[];
  stop(): Promise<void>;
}

/** `answer` gets each packet. `keepsOpen`: a FIN of the client does not end the broker's side. `keepsPackets` false: `packets` stays empty. */
export async function startRawBroker(
  answer: (packet: RawPacket, socket: Socket) => void,
  { keepsOpen = false, keepsPackets = true }: { readonly keepsOpen?: boolean; readonly keepsPackets?: boolean } = {},
): Promise<RawBroker> {
  const packets: RawPacket[] = [];
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: keepsOpen }, (socket) => {
    sockets.push(socket);
    let rest: Buffer = Buffer.alloc(0);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      for (let packet = take(); packet; packet = take()) {
        if (keepsPackets) packets.push(packet);
        answer(packet, socket);
      }
    });
    const take = (): RawPacket | undefined => {
      let length = 0;
      for (let i = 1; i < Math.min(rest.length, 5); i++) {
        const byte = rest.readUInt8(i);
        length += (byte & 0x7f) << (7 * (i - 1));
        if (byte & 0x80) continue;
        if (rest.length < i + 1 + length) return undefined;
        const head = rest.readUInt8(0);
        const body = rest.subarray(i + 1, i + 1 + length);
        rest = rest.subarray(i + 1 + length);
        return { type: head >> 4, flags: head & 0xf, body };
      }
      return undefined;
    };
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: address !== null && typeof address === "object" ? address.port : 0,
    packets,
    sockets,
    async stop() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** MQTT 5.0, 3.2: session present 0, the reason, properties as they are given. */
export const connack5 = (code: number, properties: readonly number[] = []): Buffer =>
  Buffer.from([0x20, 3 + properties.length, 0, code, properties.length, ...properties]);

/** MQTT 3.1.1, 3.2. */
export const connack4 = (code: number): Buffer => Buffer.from([0x20, 2, 0, code]);

/** PUBACK for a PUBLISH of QoS 1; with a reason only as MQTT 5 has it. */
export function puback({ body }: RawPacket, code?: number): Buffer {
  const at = 2 + body.readUInt16BE(0);
  const id = body.subarray(at, at + 2);
  return Buffer.from([0x40, code === undefined ? 2 : 3, ...id, ...(code === undefined ? [] : [code])]);
}

/** Of a PUBLISH. */
export const topicOf = ({ body }: RawPacket): string => body.subarray(2, 2 + body.readUInt16BE(0)).toString();

/** CONNECT, 3.1.2: the protocol version byte after the protocol name. */
export const versionOf = ({ body }: RawPacket): number => body.readUInt8(2 + body.readUInt16BE(0));
