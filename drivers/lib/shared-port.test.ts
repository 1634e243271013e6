import dgram, { type RemoteInfo } from "node:dgram";
import { afterEach, describe, expect, it } from "vitest";
import { silentLog } from "../../src/model/context.ts";
import { freePort } from "../../test/support/free-port.ts";
import type { DriverContext } from "../driver.ts";
import { Elsewhere } from "./elsewhere.ts";
import { createDeviceMemory, IdPool } from "./ids.ts";
import { type DatagramOptions, type Datagrams, openUdp } from "./udp.ts";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await thing.close();
});

interface Place {
  send(bytes: Uint8Array, to: Pick<RemoteInfo, "address" | "port">): Promise<void>;
  readonly port: number;
}

/** A socket of this machine that is none of ours. */
async function place(onDatagram: (datagram: Buffer, from: RemoteInfo) => void = () => {}, address = "127.0.0.1", port = 0): Promise<Place> {
  const socket = dgram.createSocket("udp4");
  socket.on("message", onDatagram);
  await new Promise<void>((ready) => socket.bind(port, address, ready));
  open.push({ close: () => new Promise<void>((done) => socket.close(() => done())) });
  const send: Place["send"] = (bytes, to) => new Promise((done) => socket.send(bytes, to.port, to.address, () => done()));
  return { send, port: socket.address().port };
}

const context = (answerMs = 5000): DriverContext => ({
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 5000, connectMs: 5000, answerMs },
});

/** Datagrams of an id, a letter and a number. */
async function connect(port: number, options: Partial<DatagramOptions> = {}, host = "127.0.0.1"): Promise<Datagrams> {
  const pools = createDeviceMemory(() => new IdPool(8, 60_000));
  const datagrams = await openUdp({ host, port, transport: "udp" }, context(), {
    fence: () => true,
    idOf: (datagram) => (datagram.length === 3 ? datagram[0] : undefined),
    ids: (address) => pools(address),
    maxInFlight: 4,
    retransmissions: 0,
    ...options,
  });
  open.push(datagrams);
  return datagrams;
}

const ask = (datagrams: Datagrams, n: number, answerMs?: number): Promise<number> =>
  datagrams.request<number>(context(answerMs), {
    frame: (id) => Buffer.of(id, 0x72, n),
    take: (datagram) => datagram[2] ?? 0,
    describe: () => `number ${n}`,
  });

/** A device that answers each number with one more, so many of them at once, the last first. */
async function device(more: number, atOnce = 1, address?: string): Promise<Place> {
  const held: (() => void)[] = [];
  const own = await place((datagram, from) => {
    held.push(() => void own.send(Buffer.of(datagram[0] ?? 0, 0x72, (datagram[2] ?? 0) + more), from));
    if (held.length === atOnce) for (const answer of held.splice(0).reverse()) answer();
  }, address);
  return own;
}

/** A device that answers from another socket, and one that such answers come from. */
async function answeringFrom(other: Pick<Place, "send">, thenItself = false): Promise<Place> {
  const own = await place(async (datagram, from) => {
    await other.send(Buffer.of(datagram[0] ?? 0, 0x72, 99), from);
    if (thenItself) await own.send(datagram, from);
  });
  return own;
}

describe("a local port for several devices", () => {
  it("tells answers with equal ids apart by the device that sent them", async () => {
    const localPort = await freePort();
    const devices = await Promise.all([10, 20, 30].map((more) => device(more, 4)));
    const all = await Promise.all(devices.map(({ port }) => connect(port, { localPort })));
    const asked = all.map((datagrams) => Promise.all([1, 2, 3, 4].map((n) => ask(datagrams, n))));
    expect(await Promise.all(asked)).toEqual([10, 20, 30].map((more) => [1, 2, 3, 4].map((n) => n + more)));
    expect(all.map(({ elsewhere }) => elsewhere.count)).toEqual([0, 0, 0]);
    expect(all.map(({ localAddress }) => localAddress)).toEqual(Array(3).fill("127.0.0.1"));
  });

  it("tells devices on one port of several addresses apart", async () => {
    const localPort = await freePort();
    const first = await device(10);
    const second = await place((datagram, from) => void second.send(Buffer.of(datagram[0] ?? 0, 0x72, 77), from), "127.0.0.2", first.port);
    const [one, other] = [await connect(first.port, { localPort }), await connect(first.port, { localPort }, "127.0.0.2")];
    expect(await Promise.all([ask(one, 1), ask(other, 1)])).toEqual([11, 77]);
  });

  it("gives two of one device their own answers, because they share its ids", async () => {
    const localPort = await freePort();
    const pool = new IdPool(8, 60_000);
    const { port } = await device(10, 4);
    const [one, other] = [await connect(port, { localPort, ids: () => pool }), await connect(port, { localPort, ids: () => pool })];
    expect(await Promise.all([ask(one, 1), ask(other, 2), ask(one, 3), ask(other, 4)])).toEqual([11, 12, 13, 14]);
  });

  it("is open while one of them is, and free then", async () => {
    const localPort = await freePort();
    const [first, second] = [await device(10), await device(20)];
    const one = await connect(first.port, { localPort });
    const other = await connect(second.port, { localPort });
    const waiting = Promise.all([
      one.close(),
      one.close(),
      expect(ask(one, 1)).rejects.toMatchObject({ reason: { type: "CONNECTION_CLOSED" } }),
    ]);
    expect(await ask(other, 1)).toBe(21);
    await waiting;
    await other.close();
    await place(undefined, "127.0.0.1", localPort);
  });

  it("opens once for all that come at once, again after it was closed, and says for each that another program has it", async () => {
    const localPort = await freePort();
    const { port } = await device(10);
    for (let round = 0; round < 20; round++) {
      const both = await Promise.all([connect(port, { localPort }), connect(port, { localPort })]);
      for (const datagrams of both) void datagrams.close();
    }
    await place(undefined, "127.0.0.1", localPort);
    for (const outcome of await Promise.allSettled([1, 2].map(() => connect(port, { localPort }))))
      expect(outcome).toMatchObject({ reason: { condition: "collector_host_trouble", message: expect.stringContaining(`${localPort}`) } });
  });
});

describe("an answer from elsewhere", () => {
  it("is never a value: it is counted and named, and the device's own answer counts", async () => {
    const localPort = await freePort();
    const other = await place(undefined, "127.0.0.2");
    const { port } = await answeringFrom(other, true);
    const plc = await connect(port, { localPort });
    expect(await ask(plc, 5)).toBe(5);
    await expect.poll(() => plc.elsewhere.words).toBe(`127.0.0.2:${other.port}`);
    expect([plc.elsewhere.count, plc.elsewhere.most]).toEqual([1, `127.0.0.2:${other.port}`]);
  });

  it("is named where the device itself is silent, also if it comes from another device of the port", async () => {
    const localPort = await freePort();
    const other = await device(20);
    const { port } = await answeringFrom(other);
    const [plc, second] = [await connect(port, { localPort }), await connect(other.port, { localPort })];
    await expect(ask(plc, 1, 200)).rejects.toMatchObject({
      reason: { type: "TIMEOUT" },
      message: `no answer of 127.0.0.1:${port} within 200 ms to number 1; one answer came from 127.0.0.1:${other.port} instead`,
    });
    expect(await ask(second, 1)).toBe(21);
  });

  it("that answers no request of ours is not counted", async () => {
    const localPort = await freePort();
    const stranger = await place();
    const { port } = await device(10);
    const plc = await connect(port, { localPort });
    for (const bytes of [[9, 1, 1], [1], []]) await stranger.send(Buffer.from(bytes), { address: "127.0.0.1", port: localPort });
    expect(await ask(plc, 1)).toBe(11);
    expect(plc.elsewhere.count).toBe(0);
  });

  it("costs no more where the port is flooded: values come, few senders are kept, and most is dropped unread", async () => {
    const localPort = await freePort();
    let looks = 0;
    const idOf = (datagram: Buffer): number | undefined => {
      looks++;
      return datagram[0];
    };
    const { port } = await device(10);
    // The socket drops answers in the flood; requests are sent again.
    const plc = await connect(port, { localPort, idOf, retransmissions: 9 });
    const strangers = await Promise.all(Array.from({ length: 20 }, () => place()));
    const to = { address: "127.0.0.1", port: localPort };
    let isOver = false;
    const flood = strangers.map(async (stranger) => {
      for (let n = 0; n < 500; n++) await stranger.send(Buffer.of(n & 0xff, 0x72, 66), to);
    });
    const all = Promise.all(flood).then(() => {
      isOver = true;
    });
    let answered = 0;
    while (!isOver) {
      expect(await ask(plc, 1, 2000)).toBe(11);
      answered++;
    }
    await all;
    expect(answered).toBeGreaterThan(0);
    expect(plc.elsewhere.words).toMatch(/^127\.0\.0\.1:\d+(, 127\.0\.0\.1:\d+){3} and others$/);
    // 10,000 came in seconds of 200 looks each.
    expect(looks - answered).toBeLessThan(4000);
  });
});

describe("a device that is silent to a socket of its own", () => {
  it("is heard where it answers to the usual port only; the port is free then", async () => {
    const usualPort = await freePort();
    const plc = await place((datagram) => void plc.send(datagram, { address: "127.0.0.1", port: usualPort }));
    const datagrams = await connect(plc.port, { usualPort, retransmissions: 2 });
    await expect(ask(datagrams, 1, 300)).rejects.toMatchObject({
      reason: { type: "TIMEOUT" },
      message: expect.stringMatching(`sent 3 times; it answers what is sent from port ${usualPort} of this machine$`),
    });
    expect([datagrams.answersUsualPort, datagrams.elsewhere.count]).toEqual([true, 0]);
    await place(undefined, "127.0.0.1", usualPort);
  });

  it.each(["free", "taken"])("is heard where it answers from elsewhere, with the usual port %s", async (which) => {
    const usualPort = await freePort();
    if (which === "taken") await place(undefined, "127.0.0.1", usualPort);
    const other = await place();
    const { port } = await answeringFrom(other);
    const datagrams = await connect(port, { usualPort, retransmissions: 2 });
    await expect(ask(datagrams, 1, 300)).rejects.toMatchObject({
      reason: { type: "TIMEOUT" },
      message: expect.stringMatching(`sent 3 times; (one answer|2 answers) came from 127.0.0.1:${other.port} instead$`),
    });
    expect(datagrams.answersUsualPort).toBe(false);
  });

  it("is not asked from there once it has answered", async () => {
    const usualPort = await freePort();
    const from: number[] = [];
    const plc = await place((datagram, sender) => {
      from.push(sender.port);
      if (from.length === 1) void plc.send(datagram, sender);
    });
    const datagrams = await connect(plc.port, { usualPort, retransmissions: 1 });
    await ask(datagrams, 1);
    await expect(ask(datagrams, 1, 100)).rejects.toMatchObject({ message: expect.stringMatching(/sent 2 times$/) });
    expect(new Set(from).size).toBe(1);
  });
});

it("senders are named up to four, the one that sent most first of all", () => {
  const elsewhere = new Elsewhere();
  expect([elsewhere.count, elsewhere.words, elsewhere.most]).toEqual([0, undefined, undefined]);
  for (const port of [1, 2, 2, 3, 4]) elsewhere.note({ address: "10.0.0.9", port });
  expect([elsewhere.words, elsewhere.most]).toEqual(["10.0.0.9:1, 10.0.0.9:2, 10.0.0.9:3, 10.0.0.9:4", "10.0.0.9:2"]);
  elsewhere.note({ address: "fd00::9", port: 5 });
  expect([elsewhere.count, elsewhere.words]).toEqual([6, "10.0.0.9:1, 10.0.0.9:2, 10.0.0.9:3, 10.0.0.9:4 and others"]);
});
