import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { driverContext } from "../../test/support/driver-context.ts";
import { fakeConnection } from "../../test/support/fake-connection.ts";
import type { Connection } from "../lib/connection.ts";
import driver from "./driver.ts";
import type { IdlessFraming } from "./idless.ts";
import { linkModbus, type ModbusCarrier } from "./link.ts";
import { lockStepCarrier } from "./lock-step.ts";
import type { ModbusRead } from "./plan.ts";
import { settingsSchema } from "./settings.ts";
import { checksum } from "./simulator.ts";

/** Makes the bytes that come for a request, in the parts in which they come. */
type Device = (request: Buffer) => readonly Uint8Array[];

const connectionTo = (where: string, device: Device): Connection =>
  fakeConnection(where, (request, receive) => {
    setImmediate(() => {
      for (const part of device(request)) receive(part);
    });
  }).connection;

let devices = 0;
function open(framing: IdlessFraming, device: Device, answerMs = 30): { carrier: ModbusCarrier; read(address: string): Promise<unknown> } {
  const settings = settingsSchema.parse({ framing });
  const ctx = driverContext({ answerMs });
  const carrier = lockStepCarrier(connectionTo(`device-${++devices}:502`, device), ctx, framing, settings);
  const { read } = linkModbus(carrier, framing);
  return {
    carrier,
    async read(address) {
      const { limits } = driver;
      if (!limits) throw new Error("no limits");
      const [request] = driver.plan([{ index: 0, ...driver.parseAddress(address, undefined, settings) }], limits({} as never, settings));
      const [reading] = await read(request as ModbusRead, ctx);
      return reading?.quality === "good" ? reading.value : reading;
    },
  };
}

const serial = (...body: number[]): Buffer => Buffer.from([...body, ...checksum(body)]);
const framed = (...body: number[]): Buffer => Buffer.from([0, 7, 0, 0, 0, body.length, ...body]);

describe("RTU, one request at a time", () => {
  it("finds the answer behind an echo whose bytes would be one", async () => {
    const { read } = open("rtu", (request) => [request, serial(1, 1, 3, 0xff, 0, 0)]);
    expect(await read("coil:773[20]")).toEqual([...Array<boolean>(8).fill(true), ...Array<boolean>(12).fill(false)]);
  });

  it("waits for the answer behind one of another size, which was asked for before", async () => {
    const { read } = open("rtu", () => [serial(1, 3, 4, 0, 1, 0, 2), serial(1, 3, 2, 0, 9)]);
    expect(await read("holding:5")).toBe(9);
  });

  it("says what came instead of an answer", async () => {
    const { read } = open("rtu", () => [serial(1, 3, 4, 0, 1, 0, 2)]);
    await expect(read("holding:5")).rejects.toThrow("the device sent 4 bytes for 1 holding registers, it must be 2");
  });

  it("warns of an answer that no request waits for", async () => {
    const answer = serial(1, 3, 2, 0, 9);
    const { read, carrier } = open("rtu", () => [answer, answer]);
    expect(await read("holding:1")).toBe(9);
    expect(carrier.warnings()).toMatchObject([{ code: "answers_unasked" }]);
  });
});

describe("Modbus TCP without ids", () => {
  it("names the units of devices without a gateway where nothing answers, and none on a serial line", async () => {
    const hint = "a device without a gateway may answer as unit 255 or 0";
    for (const [framing, address, isNamed] of [
      ["tcp_without_ids", "7/holding:0", true],
      ["tcp_without_ids", "255/holding:0", false],
      ["rtu", "7/holding:0", false],
    ] as const) {
      const failure = await open(framing, () => [])
        .read(address)
        .catch(String);
      expect(String(failure).includes(hint), `${framing} ${address}`).toBe(isNamed);
    }
  });

  const answer = framed(1, 3, 4, 0x12, 0x34, 0x56, 0x78);

  it("finds the answer whatever parts it comes in", async () => {
    for (let at = 1; at < answer.length; at++) {
      const { read } = open("tcp_without_ids", () => [answer.subarray(0, at), answer.subarray(at)]);
      expect(await read("holding:0[2]"), `${at}`).toEqual([0x1234, 0x5678]);
    }
    const { read } = open("tcp_without_ids", () => [...answer].map((byte) => Buffer.of(byte)));
    expect(await read("holding:0[2]")).toEqual([0x1234, 0x5678]);
  });

  it("takes nothing but the answer for it, and ends with a reason or a refusal otherwise", async () => {
    const frames = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.uint8Array({ minLength: 2, maxLength: 40 }).map((body) => framed(...body)),
      fc.uint8Array({ minLength: 1, maxLength: 8 }).map((rest) => framed(1, 3, ...rest)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(frames, { minLength: 1, maxLength: 4 }), async (parts) => {
        const { read } = open("tcp_without_ids", () => parts, 5);
        const value = await read("holding:0[2]").catch((error: unknown) => error);
        if (value instanceof Error) return;
        const came = Buffer.concat(parts.map((part) => Buffer.from(part)));
        const data = Buffer.from((value as number[]).flatMap((register) => [register >> 8, register & 0xff]));
        expect(came.includes(Buffer.concat([Buffer.of(3, 4), data]))).toBe(true);
      }),
      { numRuns: 150 },
    );
  });
});
