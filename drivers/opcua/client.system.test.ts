import net, { type AddressInfo } from "node:net";
import { StatusCodes } from "node-opcua-client";
import { afterEach, describe, expect, it } from "vitest";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { ALLOWED } from "../../test/conformance/allowed.ts";
import { connect, context, detailsOf, readTexts } from "../../test/support/opcua.ts";
import type { AnySession } from "../driver.ts";
import { requestBody } from "./plain.ts";
import { type OpcuaSimulator, type OpcuaSimulatorOptions, PLANT_NAMESPACE, startOpcuaSimulator } from "./simulator.ts";

const nsu = (id: string) => `nsu=${PLANT_NAMESPACE};s=${id}`;
const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

interface Tampering {
  readonly port: number;
  readonly simulator: OpcuaSimulator;
  /** Chunks that the driver has sent, by their type. */
  readonly sent: string[];
}

/** Parts of what is sent in several come so many ms apart. */
const PART_MS = 300;

/** A server without security whose every chunk passes `change` as it leaves, and what it gets `hear`. */
async function tampered(
  change: (type: string, body: Buffer, chunk: Buffer) => Buffer | readonly Buffer[] | undefined,
  options: OpcuaSimulatorOptions = {},
  hear: (bytes: Buffer) => void = () => {},
): Promise<Tampering> {
  const simulator = await startOpcuaSimulator({ bulk: 10, ...options });
  endings.push(() => simulator.close());
  const sent: string[] = [];
  const sockets = new Set<net.Socket>();
  const server = net.createServer((near) => {
    const far = net.connect(simulator.port, "127.0.0.1");
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {});
    }
    near.on("data", (bytes) => {
      sent.push(bytes.toString("latin1", 0, 3));
      hear(bytes);
      far.write(bytes);
    });
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroySoon());
    let waiting = Buffer.alloc(0);
    far.on("data", (bytes) => {
      waiting = Buffer.concat([waiting, bytes]);
      while (waiting.length >= 8 && waiting.length >= waiting.readUInt32LE(4)) {
        const chunk = Buffer.from(waiting.subarray(0, waiting.readUInt32LE(4)));
        waiting = waiting.subarray(chunk.length);
        const type = chunk.toString("latin1", 0, 3);
        const changed = type === "ACK" ? chunk : (change(type, requestBody(chunk) ?? chunk, chunk) ?? chunk);
        if (Buffer.isBuffer(changed)) near.write(changed);
        else for (const [i, part] of changed.entries()) setTimeout(() => near.write(part), i * PART_MS);
      }
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  endings.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, simulator, sent };
}

async function open(port: number, settings: Record<string, unknown> = {}): Promise<AnySession> {
  const session = await connect(detailsOf(port), context(), { settings });
  endings.push(() => session.close());
  return session;
}

/** Behind the encoding and a header without diagnostics, strings and extras (OPC 10000-4, 7.33). */
const BEHIND_HEADER = 4 + 8 + 4 + 4 + 1 + 4 + 3;
const encodingOf = (body: Buffer) => body.readUInt16LE(2);

describe("a server that does what none should", () => {
  it("grants a channel for longer than a timer runs: it is not renewed again and again without a pause", async () => {
    const { port, sent } = await tampered((type, body) => {
      // Protocol version, channel, token, time of creation, lifetime.
      if (type === "OPN") body.writeUInt32LE(0xffff_ffff, BEHIND_HEADER + 4 + 4 + 4 + 8);
      return undefined;
    });
    const session = await open(port);
    await new Promise((done) => setTimeout(done, 500));
    expect(sent.filter((type) => type === "OPN")).toHaveLength(1);
    expect(await readTexts(session, [nsu("Double")], context())).toMatchObject([{ quality: "good" }]);
  });

  it("has another time: status says by how much", async () => {
    const { port } = await tampered((type, body) => {
      const at = BEHIND_HEADER + 4 + 4 + 4;
      if (type === "OPN") body.writeBigInt64LE(body.readBigInt64LE(at) + 36_000_000_000n, at);
      return undefined;
    });
    expect(textsOf((await open(port)).warnings?.())).toEqual([
      expect.stringMatching(/the server's clock is 36\d\d s ahead of the collector's/),
    ]);
  });

  it.each([
    ["1601", 0n],
    ["1970", 116_444_736_000_000_000n],
    ["9999", 2_650_467_743_999_999_999n],
  ])("says a time of nothing (%s) for its own: that is no clock that is off", async (_, ticks) => {
    const { port } = await tampered((type, body) => {
      if (type === "OPN") body.writeBigInt64LE(ticks, BEHIND_HEADER + 4 + 4 + 4);
      return undefined;
    });
    expect(textsOf((await open(port)).warnings?.())).toEqual([]);
  });

  it.each([
    ["values", 634, nsu("Double")],
    ["what node-opcua takes apart", 557, "/Objects/x"],
  ])(
    "sends %s that cannot be taken apart: at once that variable's fault, not a time-out, and the channel goes on",
    async (_, encoding, address) => {
      let garbling = false;
      const { port } = await tampered((type, body) => {
        if (garbling && type === "MSG" && encodingOf(body) === encoding) body.writeInt32LE(1000, BEHIND_HEADER);
        return undefined;
      });
      const session = await open(port);
      garbling = true;
      const began = performance.now();
      expect(await readTexts(session, [address], context())).toMatchObject([
        { quality: "bad", fault: "device_error", detail: expect.stringContaining("cannot be taken apart") },
      ]);
      expect(performance.now() - began).toBeLessThan(3000);
      garbling = false;
      expect(await readTexts(session, [nsu("Double")], context())).toMatchObject([{ quality: "good" }]);
    },
  );

  it("answers with another service than it was asked for", async () => {
    let swapping = false;
    const { port } = await tampered((type, body) => {
      // A ReadResponse that says it is a CloseSessionResponse.
      if (swapping && type === "MSG" && encodingOf(body) === 634) body.writeUInt16LE(476, 2);
      return undefined;
    });
    const session = await open(port);
    swapping = true;
    await expect(readTexts(session, [nsu("Double")], context())).rejects.toMatchObject({ condition: "protocol_violation" });
  });

  it("gives fewer values than it was asked for", async () => {
    let cutting = false;
    const { port } = await tampered((type, body) => {
      if (cutting && type === "MSG" && encodingOf(body) === 634) body.writeInt32LE(1, BEHIND_HEADER);
      return undefined;
    });
    const session = await open(port);
    cutting = true;
    await expect(readTexts(session, [nsu("Double"), nsu("Int16")], context())).rejects.toMatchObject({
      condition: "protocol_violation",
      message: expect.stringContaining("1 values to a Read of 2"),
    });
  });

  it("fails with a status that is in no list: its number is kept", async () => {
    const { port, simulator } = await tampered((type, body) => {
      if (type === "MSG" && encodingOf(body) === 397) body.writeUInt32LE(0x8fed_0000, 16);
      return undefined;
    });
    const session = await open(port);
    simulator.misbehave({ service: "Read", answer: { fault: StatusCodes.BadInternalError } });
    await expect(readTexts(session, [nsu("Double")], context())).rejects.toMatchObject({
      reason: { type: "OPC_UA_ERROR_RESPONSE", code: 0x8fed_0000, name: null, description: null },
    });
  });

  it("announces a chunk without end, or a message of another protocol", async () => {
    for (const head of ["MSGF\xff\xff\xff\x7f", "HTTP/1.1"]) {
      let sending = false;
      const { port } = await tampered((_type, _body, chunk) => (sending ? Buffer.concat([Buffer.from(head, "latin1"), chunk]) : undefined));
      const session = await open(port);
      sending = true;
      await expect(readTexts(session, [nsu("Double")], context())).rejects.toMatchObject({ condition: "protocol_violation" });
    }
  });

  it("never ends a message: what is kept of it is bounded", async () => {
    let endless = false;
    const { port } = await tampered((type, _body, chunk) => {
      if (!endless || type !== "MSG") return undefined;
      chunk[3] = 0x43;
      return Buffer.concat(Array<Buffer>(2000).fill(chunk));
    });
    const session = await open(port);
    endless = true;
    await expect(readTexts(session, [nsu("Double")], context())).rejects.toMatchObject({
      condition: "protocol_violation",
      message: expect.stringMatching(/max_answer_bytes|cannot be taken apart/),
    });
  });
});

it("takes an answer in as many chunks as it has said, and no more", async () => {
  let chunks = 1;
  const { port } = await tampered((type, _body, chunk) => (chunks > 1 && type === "MSG" ? inChunks(chunk, chunks) : undefined), {
    bulk: 200,
  });
  const texts = Array.from({ length: 200 }, (_, i) => nsu(`Bulk.${i}`));
  const readIn = async (count: number) => {
    chunks = 1;
    const session = await open(port);
    chunks = count;
    return readTexts(session, texts, context());
  };
  expect((await readIn(1000)).map(({ quality }) => quality)).toEqual(Array(200).fill("good"));
  await expect(readIn(1001)).rejects.toMatchObject({ scope: "points", message: expect.stringContaining("or 1000 chunks") });
});

it("waits for an answer as long as chunks of it come, each within the answer time-out", async () => {
  let slow = false;
  const { port } = await tampered((type, _body, chunk) => (slow && type === "MSG" ? partsOf(chunk, 4) : undefined));
  const session = await open(port);
  slow = true;
  const ctx = { ...context(), timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 2 * PART_MS } };
  expect(await readTexts(session, [nsu("Double")], ctx)).toMatchObject([{ quality: "good" }]);
  slow = false;
});

it("asks in several chunks for what is too much for one", async () => {
  const simulator = await startOpcuaSimulator({ bulk: 5000 });
  endings.push(() => simulator.close());
  const frames: Uint8Array[] = [];
  const ctx = context({ tap: (direction, frame) => direction === "out" && frames.push(frame) });
  const session = await connect(detailsOf(simulator.port), ctx, { settings: { max_nodes: 10_000 } });
  endings.push(() => session.close());
  const texts = Array.from({ length: 5000 }, (_, i) => nsu(`Bulk.${i}`));
  const reads = simulator.requests("Read");
  expect((await readTexts(session, texts, ctx)).map(({ quality }) => quality)).toEqual(Array(5000).fill("good"));
  expect(simulator.requests("Read")).toBe(reads + 1);
  expect(frames.filter((frame) => frame[3] === 0x43).length).toBeGreaterThan(0);
  expect(ALLOWED["opcua"]?.(Buffer.concat(frames))).toEqual([]);
});

/** A message of one chunk without security as so many (OPC 10000-6, 6.7.2). */
const inChunks = (chunk: Buffer, count: number): Buffer => Buffer.concat(partsOf(chunk, count));

function partsOf(chunk: Buffer, count: number): readonly Buffer[] {
  const head = chunk.subarray(0, 24);
  const body = chunk.subarray(24);
  return Array.from({ length: count }, (_, i) => {
    const part = Buffer.concat([head, body.subarray(Math.floor((i * body.length) / count), Math.floor(((i + 1) * body.length) / count))]);
    part.write(i < count - 1 ? "C" : "F", 3, "latin1");
    part.writeUInt32LE(part.length, 4);
    part.writeUInt32LE(head.readUInt32LE(16) + i, 16);
    return part;
  });
}

it("asks for less after an answer that was too large, in the same session", async () => {
  const { port } = await tampered(
    () => undefined,
    { bulk: 6000 },
    (bytes) => {
      // The server does not hear how much is taken (OPC 10000-6, 7.1.2.3).
      if (bytes.toString("latin1", 0, 3) === "HEL") bytes.writeUInt32LE(0, 20);
    },
  );
  const texts = Array.from({ length: 6000 }, (_, i) => nsu(`Bulk.${i}`));
  const session = await open(port, { max_answer_bytes: 65_536, max_nodes: 10_000 });
  await expect(readTexts(session, texts, context())).rejects.toMatchObject({
    scope: "points",
    message: expect.stringMatching(/exceeds 65536 bytes \(max_answer_bytes\)/),
  });
  expect(session.alive()).toBe(true);
  const readings = await readTexts(session, texts.slice(0, 1000), context());
  expect(readings.map((reading) => reading.quality)).toEqual(Array(1000).fill("good"));
});
