import net from "node:net";
import modbusSerial from "modbus-serial";
import { afterEach, describe, expect, it } from "vitest";
import { silentLog } from "../../src/model/context.ts";
import { parseDataType } from "../../src/model/value.ts";
import type { AnySession, DriverContext } from "../driver.ts";
import driver from "./driver.ts";
import { checksum, type ModbusPlantOptions, startFramed, startModbusPlant } from "./simulator.ts";

const { default: ModbusRTU } = modbusSerial;
const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const ANSWER_MS = 150;
const context = (answerMs = ANSWER_MS): DriverContext => ({
  signal: AbortSignal.timeout(10_000),
  log: silentLog,
  timeouts: { nameMs: 1000, connectMs: 1000, answerMs },
});

type Framed = Pick<ModbusPlantOptions, "framing" | "transport">;
const FORMS: readonly (readonly [name: string, device: Framed, settings: object])[] = [
  ["RTU over TCP", { framing: "rtu" }, { framing: "rtu" }],
  ["RTU over UDP", { framing: "rtu", transport: "udp" }, { framing: "rtu", transport: "udp" }],
  ["Modbus TCP over UDP", { transport: "udp" }, { transport: "udp" }],
  ["a device that answers with the id 0", { framing: "zero_ids" }, { framing: "tcp_without_ids" }],
  ["the same over UDP", { framing: "zero_ids", transport: "udp" }, { framing: "tcp_without_ids", transport: "udp" }],
];

async function open(
  port: number,
  set: object,
  answerMs = ANSWER_MS,
): Promise<{ session: AnySession; read(address: string, type?: string): Promise<unknown> }> {
  const settings = driver.settings.parse(set);
  const details = driver.details.parse({ type: "modbus_tcp", host: "127.0.0.1", port, ephemeral_connections: false });
  const session = await driver.connect({ details, settings, secrets: {} }, context());
  cleanUp.push(() => session.close());
  const read = async (address: string, type?: string): Promise<unknown> => {
    const wanted = type === undefined ? undefined : (parseDataType(type) ?? driver.parseType?.(type));
    const [request] = driver.plan([{ index: 0, ...driver.parseAddress(address, wanted, settings) }], session.limits);
    if (!request) throw new Error(`no request for ${address}`);
    const [reading] = await session.read(request, context(answerMs));
    return reading?.quality === "good" ? reading.value : reading;
  };
  return { session, read };
}

describe.each(FORMS)("%s", (_, device, settings) => {
  it("gives every value of the device, its refusals, and who it is", async () => {
    const simulator = await startFramed(device);
    cleanUp.push(() => simulator.close());
    const { session, read } = await open(simulator.port, settings);
    for (const { address, type, value } of simulator.variables) expect(await read(address, type), address).toEqual(value);
    await expect(read("holding:500")).rejects.toMatchObject({ fault: "not_found", message: expect.stringContaining("exception 2") });
    const point = { index: 0, ...driver.parseAddress("holding:0", undefined, driver.settings.parse({})) };
    expect(await session.identify?.(point, context())).toBe("Example Works, PLC-7, V2.11");
    expect(session.alive()).toBe(true);
  });
});

describe("RTU over TCP", () => {
  const holding = new Map([
    [0, 11],
    [1, 22],
  ]);

  it("gets its answer behind stray bytes, and after an answer of another unit", async () => {
    const other = [2, 3, 2, 0, 99];
    const stray = Buffer.from([0xff, 0, ...other, ...checksum(other)]);
    const units = new Map([[1, { holding }]]);
    const plant = await startModbusPlant({
      units,
      framing: "rtu",
      misbehave: () => ({ change: (frame) => Buffer.concat([stray, frame]) }),
    });
    cleanUp.push(() => plant.close());
    const { read } = await open(plant.port, { framing: "rtu" });
    expect(await read("holding:0")).toBe(11);
    expect(await read("holding:1")).toBe(22);
  });

  it("ends a request whose answer has a wrong CRC, and says so", async () => {
    const flip = (frame: Buffer) => Buffer.from([...frame.subarray(0, -1), (frame.at(-1) ?? 0) ^ 1]);
    const plant = await startModbusPlant({ units: new Map([[1, { holding }]]), framing: "rtu", misbehave: () => ({ change: flip }) });
    cleanUp.push(() => plant.close());
    const { read, session } = await open(plant.port, { framing: "rtu" });
    await expect(read("holding:0")).rejects.toThrow(
      /no answer within 150 ms to holding register 0 of unit 1 \(answers with a wrong CRC: 1\)/,
    );
    expect(session.alive()).toBe(false);
  });

  it("drops the answer to a request that was given up before the next one of the same size", async () => {
    let late = true;
    const plant = await startModbusPlant({
      units: new Map([[1, { holding }]]),
      framing: "rtu",
      transport: "udp",
      misbehave: () => (late ? { delayMs: 1050 } : undefined),
    });
    cleanUp.push(() => plant.close());
    const { read } = await open(plant.port, { framing: "rtu", transport: "udp" }, 1000);
    await expect(read("holding:0")).rejects.toThrow("no answer");
    late = false;
    expect(await read("holding:1")).toBe(22);
  });
});

describe("RTU over UDP", () => {
  it("gives each request its own value although each answer comes twice, the second time late", async () => {
    const holding = new Map(Array.from({ length: 12 }, (_, i) => [i, i % 5]));
    let before = Buffer.alloc(0);
    // A network does it: the answer of before comes once more, ahead of the right one.
    const twice = (frame: Buffer): Buffer => {
      const again = before;
      before = Buffer.from(frame);
      return again.length === 0 ? frame : again;
    };
    let n = 0;
    const plant = await startModbusPlant({
      units: new Map([[1, { holding }]]),
      framing: "rtu",
      transport: "udp",
      misbehave: () => (n++ % 2 === 1 ? { change: twice } : { change: (frame) => (before = Buffer.from(frame)) }),
    });
    cleanUp.push(() => plant.close());
    const { read } = await open(plant.port, { framing: "rtu", transport: "udp" }, 1000);
    for (let at = 0; at < 12; at++) expect(await read(`holding:${at}`), `${at}`).toBe(at % 5);
  });
});

describe("modbus-serial", () => {
  it("reads the simulator by RTU over TCP, as the driver does", async () => {
    const simulator = await startFramed({ framing: "rtu" });
    cleanUp.push(() => simulator.close());
    const client = new ModbusRTU();
    client.setTimeout(2000);
    await client.connectTelnet("127.0.0.1", { port: simulator.port });
    cleanUp.push(() => new Promise<void>((done) => client.close(() => done())));
    client.setID(1);
    expect((await client.readHoldingRegisters(0, 3)).data).toEqual([0xfff9, 0xb2d0, 0x5e00]);
    expect((await client.readCoils(0, 9)).data.slice(0, 9)).toEqual([true, false, true, true, false, false, false, false, true]);
    await expect(client.readHoldingRegisters(500, 1)).rejects.toMatchObject({ modbusCode: 2 });
  });

  it("sends the same bytes by RTU over TCP", async () => {
    const heard: string[] = [];
    const server = net.createServer((socket) => socket.on("data", (bytes) => heard.push(bytes.toString("hex"))).on("error", () => {}));
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", () => ready()));
    cleanUp.push(() => server.close());
    const { port } = server.address() as net.AddressInfo;
    const client = new ModbusRTU();
    client.setTimeout(ANSWER_MS);
    await client.connectTelnet("127.0.0.1", { port });
    client.setID(7);
    await client.readInputRegisters(107, 3).catch(() => {});
    const { read } = await open(port, { framing: "rtu" });
    await expect(read("7/input:107[3]")).rejects.toThrow("no answer");
    client.close(() => {});
    expect(heard).toHaveLength(2);
    expect(heard[0]).toBe(heard[1]);
  });
});
