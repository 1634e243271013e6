import net, { type AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FaultProxy, seededRandom, startFaultProxy } from "../support/fault-proxy.ts";

const ANSWER = Buffer.from("0123456789");
let server: net.Server;
let proxy: FaultProxy;

/** Sends one byte through the proxy and tells what came back until the end. */
async function ask(port: number): Promise<{ readonly bytes: Buffer; readonly chunks: number; readonly end: string }> {
  const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
  const chunks: Buffer[] = [];
  const end = new Promise<string>((done) => {
    socket.once("error", (error: NodeJS.ErrnoException) => done(error.code ?? "error"));
    socket.once("end", () => done("FIN"));
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      if (Buffer.concat(chunks).length === ANSWER.length) done("whole");
    });
    setTimeout(() => done("nothing"), 300);
  });
  socket.on("connect", () => socket.write("?"));
  const how = await end;
  socket.destroy();
  return { bytes: Buffer.concat(chunks), chunks: chunks.length, end: how };
}

beforeEach(async () => {
  server = net.createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => {});
    socket.on("data", () => socket.write(ANSWER));
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  proxy = await startFaultProxy((server.address() as AddressInfo).port, 1);
});
afterEach(async () => {
  await proxy.close();
  server.close();
});

describe("the fault proxy", () => {
  it("passes bytes through and counts", async () => {
    expect(await ask(proxy.port)).toMatchObject({ bytes: ANSWER, end: "whole" });
    expect(proxy.accepted()).toBe(1);
    expect(proxy.sent()).toEqual([Buffer.from("?")]);
    await expect.poll(() => proxy.connections()).toBe(0);
  });

  it.each([
    ["silent", "", "nothing"],
    ["cut", "01234", "FIN"],
    ["close-now", "", "FIN"],
    ["split", "0123456789", "whole"],
    ["delay", "0123456789", "whole"],
  ] as const)("%s: the driver gets %j and then %s", async (fault, text, end) => {
    proxy.fault = fault;
    proxy.delayMs = 20;
    const answer = await ask(proxy.port);
    expect([answer.bytes.toString(), answer.end]).toEqual([text, end]);
    if (fault === "split") expect(answer.chunks).toBeGreaterThan(1);
  });

  it("resets in the middle of an answer", async () => {
    proxy.fault = "reset";
    expect((await ask(proxy.port)).end).toBe("ECONNRESET");
  });

  it("turns over one bit, the same one for the same seed", async () => {
    proxy.fault = "flip";
    const { bytes } = await ask(proxy.port);
    const turned = [...bytes].map((byte, i) => byte ^ (ANSWER[i] ?? 0)).filter((difference) => difference !== 0);
    expect(turned).toHaveLength(1);
    const again = await startFaultProxy((server.address() as AddressInfo).port, 1);
    again.fault = "flip";
    expect((await ask(again.port)).bytes).toEqual(bytes);
    await again.close();
  });

  it("has a random source that its seed decides", () => {
    const [a, b, c] = [seededRandom(7), seededRandom(7), seededRandom(8)].map((random) => Array.from({ length: 100 }, random));
    expect(a).toEqual(b);
    expect(a).not.toEqual(c);
    for (const value of a ?? []) expect(value >= 0 && value < 1).toBe(true);
  });
});
