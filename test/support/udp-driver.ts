import dgram from "node:dgram";
import { z } from "zod";
import { type DriverContext, defineDriver, type Limits, type Request } from "../../drivers/driver.ts";
import { bounded, stoppedWhile } from "../../drivers/lib/abort.ts";
import { toReasonError } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";

/** A driver for a device that echoes datagrams: what every UDP driver has to do to learn of refusals, and nothing more. */
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
    if (!ctx.resolve) throw new Error("needs a resolver");
    const [found] = await bounded(ctx.resolve(host, ctx.signal), {
      signal: ctx.signal,
      timeoutMs: ctx.timeouts.nameMs,
      onTimeout: () => new ReasonError("LOOKUP_ERROR", `no answer for the name ${host}`),
      onAbort: () => stoppedWhile(`looking up ${host}`, ctx.signal),
    });
    if (!found) throw new Error("no address");
    const { address, family } = found;
    const socket = dgram.createSocket(family === 6 ? "udp6" : "udp4");
    let lost: ReasonError | undefined;
    let waiting: { readonly nonce: number; done(error?: Error): void } | undefined;
    const lose = (error: unknown) => {
      lost ??= toReasonError(error);
      waiting?.done(lost);
    };
    socket.on("error", lose);
    socket.on("message", (bytes) => {
      if (waiting && bytes.length === 2 && bytes.readUInt16BE() === waiting.nonce) waiting.done();
    });
    // Connected: refusals and unreachable hosts come back as errors of this socket.
    await new Promise<void>((done, fail) => {
      socket.once("connect", done);
      socket.connect(port, address, (error?: Error) => error && fail(error));
    });
    return {
      limits: { maxPoints: 1, maxBytes: 2, inFlight: 1 },
      async read({ points }, { signal, timeouts }: DriverContext) {
        const nonce = points[0]?.address ?? 0;
        const answer = new Promise<void>((done, fail) => {
          if (lost) throw lost;
          waiting = { nonce, done: (error) => (error ? fail(error) : done()) };
          const frame = Buffer.alloc(2);
          frame.writeUInt16BE(nonce);
          socket.send(frame, (error) => error && lose(error));
        });
        await bounded(answer, {
          signal,
          timeoutMs: timeouts.answerMs,
          onTimeout: () => new ReasonError("TIMEOUT", `no answer within ${timeouts.answerMs} ms`),
          onAbort: () => stoppedWhile("waiting for an answer", signal),
        });
        return points.map(() => ({ quality: "good", value: nonce }));
      },
      alive: () => lost === undefined,
      close: () =>
        new Promise((done) => {
          lost ??= new ReasonError("CONNECTION_CLOSED", "closed");
          try {
            socket.close(() => done());
          } catch {
            done();
          }
        }),
    };
  },
});
