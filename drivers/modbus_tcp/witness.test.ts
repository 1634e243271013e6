import net from "node:net";
import fc from "fast-check";
import modbusSerial from "modbus-serial";
import { afterEach, describe, expect, it } from "vitest";
import { silentLog } from "../../src/model/context.ts";
import { parseDataType } from "../../src/model/value.ts";
import { freePort } from "../../test/support/free-port.ts";
import driver from "./driver.ts";
import { MAX_COUNT, requestFrame } from "./frames.ts";

// Another implementation of the protocol, beside ours: npm's modbus-serial.
const { default: ModbusRTU, ServerTCP } = modbusSerial;

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

/** A socket that is connected to nothing and keeps what is written. */
class Written extends net.Socket {
  override readonly readyState = "open";
  readonly frames: Buffer[] = [];
  override write(frame: unknown): boolean {
    if (frame instanceof Uint8Array) this.frames.push(Buffer.from(frame));
    return true;
  }
}

describe("modbus-serial", () => {
  it("forms the same requests, byte for byte", async () => {
    const socket = new Written();
    const client = new ModbusRTU();
    client.linkTCP(socket, { port: 0 }, () => {});
    const ask = { 1: client.writeFC1, 2: client.writeFC2, 3: client.writeFC3, 4: client.writeFC4 };
    const read = fc.constantFrom<1 | 2 | 3 | 4>(1, 2, 3, 4).chain((functionCode) =>
      fc.record({
        functionCode: fc.constant(functionCode),
        unit: fc.integer({ min: 0, max: 255 }),
        start: fc.integer({ min: 0, max: 65_535 }),
        count: fc.integer({ min: 1, max: MAX_COUNT[functionCode] }),
      }),
    );
    await fc.assert(
      fc.asyncProperty(read, async (wanted) => {
        socket.frames.length = 0;
        ask[wanted.functionCode].call(client, wanted.unit, wanted.start, wanted.count, () => {});
        await new Promise((done) => setImmediate(done));
        const [theirs] = socket.frames;
        expect(theirs).toBeDefined();
        expect(requestFrame(theirs?.readUInt16BE(0) ?? 0, wanted).toString("hex")).toBe(theirs?.toString("hex"));
      }),
    );
  });

  it("serves what the driver reads: each area, numbers in two registers, an exception", async () => {
    const port = await freePort();
    const server = new ServerTCP(
      {
        getCoil: (at: number) => at % 3 === 0,
        getDiscreteInput: (at: number) => at % 2 === 1,
        getInputRegister: (at: number) => at + 1000,
        getHoldingRegister: (at: number, unit: number) => {
          if (at >= 500) throw new Error("no such register");
          return at === 20 ? 0x42f6 : at === 21 ? 0xe979 : at + unit * 100;
        },
      },
      { host: "127.0.0.1", port, unitID: 255 },
    );
    cleanUp.push(() => new Promise<void>((done) => server.close(() => done())));
    await new Promise<void>((done) => server.on("initialized", () => done()));

    const settings = driver.settings.parse({});
    const details = driver.details.parse({ type: "modbus_tcp", host: "127.0.0.1", port, ephemeral_connections: false });
    const ctx = { signal: new AbortController().signal, log: silentLog, timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 5000 } };
    const session = await driver.connect({ details, settings, secrets: {} }, ctx);
    cleanUp.push(() => session.close());
    const read = async (address: string, type?: string) => {
      const parsed = driver.parseAddress(address, type === undefined ? undefined : parseDataType(type), settings);
      const [request] = driver.plan([{ index: 0, ...parsed }], session.limits);
      if (!request) throw new Error(`no request for ${address}`);
      const [reading] = await session.read(request, ctx);
      return reading?.quality === "good" ? reading.value : reading;
    };
    expect(await read("coil:0[9]")).toEqual([true, false, false, true, false, false, true, false, false]);
    expect(await read("discrete:7")).toBe(true);
    expect(await read("input:5")).toBe(1005);
    expect(await read("7/holding:3")).toBe(703);
    expect(await read("holding:20", "float32")).toBeCloseTo(123.456, 3);
    expect(await read("holding:0[125]")).toHaveLength(125);
    await expect(read("holding:500")).rejects.toMatchObject({ fault: "device_error", message: expect.stringContaining("exception 4") });
    expect(await read("holding:1")).toBe(101);
  });
});
