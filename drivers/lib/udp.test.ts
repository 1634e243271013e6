import dgram, { type RemoteInfo } from "node:dgram";
import { getEventListeners } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { sleep } from "../../src/base/timer.ts";
import { silentLog } from "../../src/model/context.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { freePort } from "../../test/support/free-port.ts";
import type { DriverContext } from "../driver.ts";
import { IdPool } from "./ids.ts";
import { type DatagramOptions, type DatagramRequest, openUdp } from "./udp.ts";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const thing of open.splice(0)) await thing.close();
});

type Answer = (datagram: Buffer, from: RemoteInfo, reply: (bytes: Buffer) => void, nth: number) => void;
const echo: Answer = (datagram, _from, reply) => reply(datagram);

/** A device on loopback, and what it has received. */
async function device(answer: Answer, port = 0) {
  const received: Buffer[] = [];
  const socket = dgram.createSocket("udp4");
  socket.on("message", (datagram, from) => {
    received.push(datagram);
    answer(datagram, from, (bytes) => socket.send(bytes, from.port, from.address, () => {}), received.length);
  });
  await new Promise<void>((ready) => socket.bind(port, "127.0.0.1", ready));
  let isOpen = true;
  const close = () =>
    new Promise<void>((done) => {
      if (isOpen) socket.close(() => done());
      else done();
      isOpen = false;
    });
  open.push({ close });
  return { port: socket.address().port, received, close };
}

const context = (answerMs = 5000, more: Partial<DriverContext> = {}): DriverContext => ({
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 5000, connectMs: 5000, answerMs },
  ...more,
});

/** Datagrams of an id, a letter ('r' reads) and a number. */
async function connect(
  port: number,
  { pool = new IdPool(8, 60_000), ...more }: Partial<DatagramOptions> & { pool?: IdPool } = {},
  ctx = context(),
) {
  const datagrams = await openUdp(
    { host: "plc", port, transport: "udp" },
    { resolve, ...ctx },
    {
      fence: (frame) => frame[1] === 0x72 || `command ${frame[1]}`,
      idOf: (datagram) => (datagram.length === 3 ? datagram[0] : undefined),
      ids: () => pool,
      maxInFlight: 4,
      retransmissions: 0,
      ...more,
    },
  );
  open.push(datagrams);
  return datagrams;
}
const resolve: NonNullable<DriverContext["resolve"]> = async () => [{ address: "127.0.0.1", family: 4 }];
const asking = (n: number, more: Partial<DatagramRequest<number>> = {}): DatagramRequest<number> => ({
  frame: (id) => Buffer.of(id, 0x72, n),
  take: (datagram) => (datagram[2] === 0xee ? undefined : datagram[2]),
  describe: () => `number ${n}`,
  ...more,
});

describe("a request", () => {
  it("gets its own answer, whatever their order", async () => {
    const waiting: (() => void)[] = [];
    const { port } = await device((datagram, _from, reply) => {
      waiting.push(() => reply(datagram));
      if (waiting.length === 4) for (const answer of waiting.splice(0).reverse()) answer();
    });
    const connected: string[] = [];
    const plc = await connect(port, {}, context(5000, { connected: (host, address) => void connected.push(`${host} ${address}`) }));
    expect(connected).toEqual([]);
    expect(await Promise.all([1, 2, 3, 4].map((n) => plc.request(context(), asking(n))))).toEqual([1, 2, 3, 4]);
    expect(connected).toEqual(["plc 127.0.0.1"]);
  });

  it("is sent again within its answer time-out where a datagram is lost, byte for byte", async () => {
    const { port, received } = await device((datagram, _from, reply, nth) => {
      if (nth === 3) reply(datagram);
    });
    const plc = await connect(port, { retransmissions: 3 });
    expect(await plc.request(context(2000), asking(7))).toBe(7);
    expect(received).toHaveLength(3);
    expect(new Set(received.map((datagram) => datagram.toString("hex"))).size).toBe(1);
  });

  it("ends as TIMEOUT after as many tries; the socket stays, the id rests, and the late answer is no other's", async () => {
    const late: (() => void)[] = [];
    const { port, received } = await device((datagram, _from, reply, nth) => {
      if (nth <= 3) late.push(() => reply(Buffer.of(datagram[0] ?? 0, 0x72, 99)));
      else for (const answer of [...late.splice(0), () => reply(datagram)]) answer();
    });
    const plc = await connect(port, { retransmissions: 2 });
    await expect(plc.request(context(150), asking(1))).rejects.toMatchObject({
      reason: { type: "TIMEOUT" },
      message: expect.stringMatching(/^no answer of plc:\d+ within 150 ms to number 1, sent 3 times$/),
    });
    expect(plc.alive()).toBe(true);
    expect(await plc.request(context(), asking(2))).toBe(2);
    expect(received.map(([id]) => id)).toEqual([1, 1, 1, 2]);
    expect(plc.dropped()).toEqual({ late: 3, duplicates: 0, strangers: 0 });
  });

  it("takes no id that rests, also on a new socket", async () => {
    const { port, received } = await device(() => {});
    const ids = new IdPool(8, 60_000);
    for (let i = 0; i < 3; i++) {
      const plc = await connect(port, { pool: ids });
      await expect(plc.request(context(20), asking(i))).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
      await plc.close();
    }
    await expect.poll(() => received.map(([id]) => id)).toEqual([1, 2, 3]);
  });

  it("does not take the late copy of an answer to the request before, also where most ids rest", async () => {
    let last: Buffer | undefined;
    const { port } = await device((datagram, _from, reply) => {
      if (last) reply(last);
      reply(datagram);
      last = datagram;
    });
    const ids = new IdPool(8, 60_000);
    for (let i = 0; i < 600; i++) ids.rest(ids.take(performance.now()) ?? -1, performance.now());
    const plc = await connect(port, { pool: ids });
    for (const n of [1, 2, 3, 4]) expect(await plc.request(context(), asking(n))).toBe(n);
  });

  it("that was sent more than once and answered leaves its id at rest: each copy may have an answer", async () => {
    const { port } = await device((datagram, _from, reply, nth) => {
      if (nth === 2) reply(datagram);
    });
    const ids = new IdPool(8, 60_000);
    const plc = await connect(port, { pool: ids, retransmissions: 1 });
    expect(await plc.request(context(400), asking(7))).toBe(7);
    expect(ids.isResting(1)).toBe(true);
  });

  it("counts what answers nothing, and waits on", async () => {
    const { port } = await device((datagram, _from, reply) => {
      const id = datagram[0] ?? 0;
      for (const bytes of [[1, 2], [], [id + 9, 0x72, 5], [id, 0x72, 0xee]]) reply(Buffer.from(bytes));
      for (let i = 0; i < 3; i++) reply(datagram);
    });
    const plc = await connect(port);
    expect(await plc.request(context(), asking(4))).toBe(4);
    await expect.poll(() => plc.dropped()).toEqual({ late: 0, duplicates: 2, strangers: 4 });
  });

  it("knows a duplicate by the ids that were answered last, and keeps no more of them", async () => {
    const socket = Promise.withResolvers<(bytes: Buffer) => void>();
    const { port } = await device((datagram, _from, reply) => {
      reply(datagram);
      socket.resolve(reply);
    });
    const idOf = (datagram: Buffer): number | undefined => (datagram.length === 3 ? datagram.readUInt16BE(0) : undefined);
    const plc = await connect(port, { pool: new IdPool(16, 60_000), idOf, fence: () => true });
    const frame = (id: number): Buffer => Buffer.of(id >> 8, id & 0xff, 7);
    for (let i = 0; i < 300; i++) expect(await plc.request(context(), asking(7, { frame }))).toBe(7);
    const again = await socket.promise;
    for (const id of [300, 45, 1]) again(frame(id));
    await expect.poll(() => plc.dropped()).toEqual({ late: 0, duplicates: 2, strangers: 1 });
  });

  it("hears nobody but its device", async () => {
    const stranger = dgram.createSocket("udp4");
    open.push({ close: () => new Promise<void>((done) => stranger.close(done)) });
    const { port } = await device((datagram, from, reply) => {
      stranger.send(Buffer.of(datagram[0] ?? 0, 0x72, 66), from.port, from.address, () => setTimeout(reply, 100, datagram));
    });
    const plc = await connect(port);
    expect(await plc.request(context(), asking(4))).toBe(4);
  });

  it("is refused by its device alone: a fault, or an answer that breaks the protocol", async () => {
    const { port } = await device(echo);
    const plc = await connect(port);
    const refused = new FaultError("access_denied", "no");
    const fails = (error: Error) => {
      const take = () => {
        throw error;
      };
      return plc.request(context(), asking(1, { take }));
    };
    await expect(fails(refused)).rejects.toBe(refused);
    await expect(fails(new ReasonError("UNKNOWN", "garbled"))).rejects.toThrow("garbled");
    expect(plc.alive()).toBe(true);
    expect(await plc.request(context(), asking(5))).toBe(5);
  });

  it("ends with the signal, and the socket stays", async () => {
    const { port } = await device((datagram, _from, reply) => datagram[2] !== 1 && reply(datagram));
    const plc = await connect(port);
    const stop = new AbortController();
    const request = plc.request(context(5000, { signal: stop.signal }), asking(1));
    await sleep(30);
    stop.abort();
    await expect(request).rejects.toMatchObject({ reason: { type: "TIMEOUT" }, message: expect.stringContaining("number 1") });
    expect(getEventListeners(stop.signal, "abort")).toEqual([]);
    await expect(plc.request(context(5000, { signal: stop.signal }), asking(1))).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    expect(await plc.request(context(), asking(2))).toBe(2);
  });

  it("is one of so many, and no more", async () => {
    const { port } = await device(() => {});
    const plc = await connect(port, { maxInFlight: 2 });
    const both = [1, 2].map((n) => plc.request(context(300), asking(n)).catch((error: unknown) => error));
    await expect(plc.request(context(), asking(3))).rejects.toMatchObject({ condition: "internal_error" });
    for (const error of await Promise.all(both)) expect(error).toMatchObject({ reason: { type: "TIMEOUT" } });
  });
});

describe("the socket", () => {
  it("knows this machine's address on the way to the device", async () => {
    const { port } = await device(echo);
    expect((await connect(port)).localAddress).toBe("127.0.0.1");
  });

  it("says that nobody listens there: CONNECTION_REFUSED for all that wait, at once", async () => {
    const { port, close } = await device(echo, await freePort());
    const plc = await connect(port);
    expect(await plc.request(context(), asking(1))).toBe(1);
    await close();
    const lost: unknown[] = [];
    plc.onLost((failure) => lost.push(failure.reason.type));
    for (const outcome of await Promise.all([1, 2].map((n) => plc.request(context(), asking(n)).catch((error: unknown) => error))))
      expect(outcome).toMatchObject({ reason: { type: "CONNECTION_REFUSED" } });
    expect(plc.alive()).toBe(false);
    expect(lost).toEqual(["CONNECTION_REFUSED"]);
    await expect(plc.request(context(), asking(3))).rejects.toMatchObject({ reason: { type: "CONNECTION_REFUSED" } });
    // Well again, on a new socket.
    await device(echo, port);
    expect(await (await connect(port)).request(context(), asking(4))).toBe(4);
  });

  it("lets nothing pass but what reads", async () => {
    const { port, received } = await device(echo);
    const tapped: string[] = [];
    const plc = await connect(port, { tap: (direction, frame) => tapped.push(`${direction} ${Buffer.from(frame).toString("hex")}`) });
    await plc.request(context(), asking(1));
    await expect(plc.request(context(), asking(1, { frame: (id) => Buffer.of(id, 0x77, 1) }))).rejects.toMatchObject({
      condition: "internal_error",
      message: expect.stringContaining("command 119"),
    });
    expect(plc.alive()).toBe(false);
    await sleep(50);
    expect(received).toHaveLength(1);
    expect(tapped).toEqual(["out 017201", "in 017201"]);
  });

  it("sends from the local port that is set, and says that another program has it", async () => {
    const from: number[] = [];
    const { port } = await device((datagram, sender, reply) => {
      from.push(sender.port);
      reply(datagram);
    });
    const free = await device(() => {});
    await free.close();
    const plc = await connect(port, { localPort: free.port });
    await plc.request(context(), asking(1));
    expect(from).toEqual([free.port]);
    await plc.close();
    await device(() => {}, free.port);
    await expect(connect(port, { localPort: free.port })).rejects.toMatchObject({
      condition: "collector_host_trouble",
      message: expect.stringContaining(`local UDP port ${free.port}`),
    });
  });

  it("is closed once, and ends what waits", async () => {
    const { port } = await device(() => {});
    const plc = await connect(port);
    const request = plc.request(context(), asking(1));
    await Promise.all([plc.close(), plc.close(), expect(request).rejects.toMatchObject({ reason: { type: "CONNECTION_CLOSED" } })]);
    await expect(plc.request(context(), asking(1))).rejects.toMatchObject({ reason: { type: "CONNECTION_CLOSED" } });
  });

  it.each([0, 65_536])("is not opened for port %d", async (port) => {
    await expect(connect(port)).rejects.toMatchObject({ condition: "configuration_invalid" });
  });
});
