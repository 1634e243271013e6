import { z } from "zod";
import { defineDriver, type Limits, type Request } from "../../drivers/driver.ts";
import { createDeviceMemory, IdPool } from "../../drivers/lib/ids.ts";
import { openUdp } from "../../drivers/lib/udp.ts";

// cut: udp
const idsOf = createDeviceMemory(() => new IdPool(8, 30_000));

/** A driver for a device that echoes datagrams of an id and a number: the least that a driver on `drivers/lib/udp.ts` is. */
export default defineDriver<{ host: string; port: number }, Record<string, never>, number, Request<number>, Limits>({
  type: "udp_echo",
  title: "UDP echo",
  details: z.object({ host: z.string(), port: z.int() }),
  settings: z.strictObject({}) as unknown as z.ZodType<Record<string, never>>,
  maxConnections: 1,
  endpoint: ({ host, port }) => ({ host, port, transport: "udp" }),
  keepsConnection: () => true,
  parseAddress: (text) => ({ address: Number(text), type: { scalar: "uint16" } }),
  plan: (points) => points.map((point) => ({ points: [point] })),
  async connect({ details: { host, port } }, ctx) {
    const datagrams = await openUdp({ host, port, transport: "udp" }, ctx, {
      fence: (frame) => frame.length === 3 || `${frame.length} bytes`,
      idOf: (datagram) => (datagram.length === 3 ? datagram[0] : undefined),
      ids: (address) => idsOf(`${address}:${port}`),
      maxInFlight: 1,
      retransmissions: 2,
      tap: ctx.tap,
    });
    return {
      limits: { maxPoints: 1, maxBytes: 2, inFlight: 1 },
      async read({ points }, readCtx) {
        const number = points[0]?.address ?? 0;
        const value = await datagrams.request(readCtx, {
          frame: (id) => Buffer.of(id, number >> 8, number & 0xff),
          take: (datagram) => datagram.readUInt16BE(1),
          describe: () => `number ${number}`,
        });
        return points.map(() => ({ quality: "good", value }));
      },
      alive: () => datagrams.alive(),
      close: () => datagrams.close(),
    };
  },
});
// cut: end
