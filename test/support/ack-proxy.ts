import { once } from "node:events";
import net, { type AddressInfo } from "node:net";
import { reset } from "../../simulators/reset.ts";

/** What happens to one PUBACK on its way from the broker: it passes, is dropped, or the connection is reset instead. */
export type AckFault = "pass" | "drop" | "reset";

export interface AckProxyOptions {
  /** True: a connection is reset as soon as the client asks for something on it. */
  readonly resetsConnect?: () => boolean;
}

/** Stands between an MQTT client and its broker: the client's packets pass, the broker's acknowledgements as `fault` says. */
export interface AckProxy {
  readonly port: number;
  /** Acknowledgements that the client never got. */
  dropped(): number;
  resets(): number;
  /** Cuts every connection, and while true each new one at once. */
  away(on: boolean): void;
  stop(): Promise<void>;
}

const PUBACK = 4;

export async function startAckProxy(
  brokerPort: number,
  fault: () => AckFault,
  { resetsConnect = () => false }: AckProxyOptions = {},
): Promise<AckProxy> {
  const open = new Set<net.Socket>();
  let dropped = 0;
  let resets = 0;
  let isAway = false;
  const server = net.createServer({ noDelay: true }, (client) => {
    if (isAway) {
      reset(client);
      return;
    }
    const broker = net.connect({ host: "127.0.0.1", port: brokerPort, noDelay: true });
    for (const socket of [client, broker]) {
      open.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => open.delete(socket));
    }
    const isReset = resetsConnect();
    client.on("data", (chunk) => {
      if (!isReset) broker.write(chunk);
      else if (!client.destroyed) {
        resets++;
        reset(client);
      }
    });
    client.on("close", () => broker.destroy());
    broker.on("close", () => client.destroySoon());
    let rest: Buffer = Buffer.alloc(0);
    broker.on("data", (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      for (let length = packetBytes(rest); length !== undefined && rest.length >= length; length = packetBytes(rest)) {
        const packet = rest.subarray(0, length);
        rest = rest.subarray(length);
        const what = packet.readUInt8(0) >> 4 === PUBACK ? fault() : "pass";
        if (what === "pass") client.write(packet);
        else if (what === "drop") dropped++;
        else {
          resets++;
          reset(client);
          return;
        }
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    dropped: () => dropped,
    resets: () => resets,
    away(on) {
      isAway = on;
      if (on) for (const socket of open) reset(socket);
    },
    async stop() {
      const closed = once(server, "close");
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** Of the first packet (MQTT 5.0, 2.1.4); undefined: its length has not arrived. */
function packetBytes(bytes: Buffer): number | undefined {
  let length = 0;
  for (let i = 1; i < Math.min(bytes.length, 5); i++) {
    const byte = bytes.readUInt8(i);
    length += (byte & 0x7f) << (7 * (i - 1));
    if ((byte & 0x80) === 0) return i + 1 + length;
  }
  return undefined;
}
