import dgram from "node:dgram";
import net from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { Gate, type GateOptions } from "./gate.ts";
import { DeviceServer } from "./kit/device-server.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** A device that says everything again, over TCP and UDP, behind a gate. */
async function gated(options: Partial<GateOptions> = {}): Promise<Gate> {
  const server = new DeviceServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (bytes) => socket.write(bytes));
    return { hangUp: () => socket.destroy() };
  });
  await server.listen({});
  open.push(() => server.close());
  const udp = dgram.createSocket("udp4");
  udp.on("message", (bytes, { port }) => udp.send(bytes, port, "127.0.0.1"));
  await new Promise<void>((ready) => udp.bind(server.port, "127.0.0.1", ready));
  open.push(() => new Promise<void>((done) => udp.close(() => done())));
  const gate = await Gate.start({ host: "127.0.0.1", port: 0, devicePort: server.port, hasUdp: true, ...options });
  open.push(() => gate.close());
  return gate;
}

/** What comes back of a text, and whether the connection ended. */
function client(port: number) {
  const socket = net.connect({ host: "127.0.0.1", port });
  open.push(() => socket.destroy());
  const seen = { text: "", error: "", isClosed: false };
  socket.on("data", (bytes) => (seen.text += bytes.toString()));
  socket.on("error", (error: NodeJS.ErrnoException) => (seen.error = error.code ?? ""));
  socket.on("close", () => (seen.isClosed = true));
  return { seen, say: (text: string) => socket.write(text) };
}
const become = (check: () => void) => vi.waitFor(check, { timeout: 10_000, interval: 5 });

it("passes everything on, over TCP and UDP", async () => {
  const gate = await gated();
  const one = client(gate.port);
  one.say("a".repeat(200_000));
  await become(() => expect(one.seen.text).toHaveLength(200_000));
  const udp = dgram.createSocket("udp4");
  open.push(() => new Promise<void>((done) => udp.close(() => done())));
  const answer = new Promise<string>((resolve) => udp.once("message", (bytes) => resolve(bytes.toString())));
  udp.send("datagram", gate.port, "127.0.0.1");
  expect(await answer).toBe("datagram");
});

it("plants each fault, several at once, and heals: as a fresh start", async () => {
  const gate = await gated({ slowMs: 30, dropEveryMs: 20 });
  await gate.plant(["silent"]);
  const silent = client(gate.port);
  silent.say("hello");
  await gate.plant(["silent", "drop"]);
  await become(() => expect(silent.seen).toEqual({ text: "", error: "ECONNRESET", isClosed: true }));
  await gate.plant(["slow"]);
  const slow = client(gate.port);
  slow.say("late");
  await become(() => expect(slow.seen.text).toBe("late"));
  await gate.plant(["refuses", "slow"]);
  await become(() => expect(slow.seen.isClosed).toBe(true));
  const refused = client(gate.port);
  await become(() => expect(refused.seen.error).toBe("ECONNREFUSED"));
  const { port } = gate;
  await gate.plant([]);
  expect(gate.port).toBe(port);
  const well = client(port);
  well.say("well");
  await become(() => expect(well.seen).toEqual({ text: "well", error: "", isClosed: false }));
});
