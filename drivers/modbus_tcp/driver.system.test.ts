import net, { type AddressInfo } from "node:net";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { silentLog } from "../../src/model/context.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { parseDataType, type Value } from "../../src/model/value.ts";
import type { AnySession, DriverContext, Point, Request } from "../driver.ts";
import driver from "./driver.ts";
import { type Misbehaviour, type ModbusPlantOptions, type PlantRequest, type PlantUnit, startModbusPlant } from "./simulator.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const context = (answerMs = 10_000): DriverContext => ({
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 5000, connectMs: 5000, answerMs },
});

async function open(port: number, local: object = {}, details: object = {}) {
  const settings = driver.settings.parse(local);
  const session = await driver.connect(
    { details: driver.details.parse({ type: "modbus_tcp", host: "127.0.0.1", port, ...details }), settings, secrets: {} },
    context(),
  );
  cleanUp.push(() => session.close());
  return { session, settings };
}

/** The only request for these addresses (`holding:0:int16`). */
function requestFor(session: AnySession, settings: unknown, ...variables: string[]): Request {
  const points: Point[] = variables.map((text, index) => {
    const [area, number, type] = text.split(":");
    return { index, ...driver.parseAddress(`${area}:${number}`, type === undefined ? undefined : parseDataType(type), settings) };
  });
  const requests = driver.plan(points, session.limits);
  const [request] = requests;
  if (!request || requests.length > 1) throw new Error(`${requests.length} requests for ${variables.join(", ")}`);
  return request;
}

/** Answers what is written on it: for each request as listed the bytes beside it, byte for byte. */
async function scripted(answers: readonly (readonly [request: string, answer: string])[]) {
  const got: string[] = [];
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    cleanUp.push(() => socket.destroy());
    let at = 0;
    socket.on("data", (chunk) => {
      got.push(chunk.toString("hex"));
      const answer = answers[at++]?.[1];
      if (answer) socket.write(hex(answer));
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  cleanUp.push(() => server.close());
  return { port: (server.address() as AddressInfo).port, got };
}

const registers = (...values: number[]): PlantUnit => ({ holding: new Map(values.map((value, i) => [i, value])) });
async function plant(options: Partial<ModbusPlantOptions> = {}) {
  const started = await startModbusPlant({ units: new Map([[1, registers(...Array.from({ length: 200 }, (_, i) => i))]]), ...options });
  cleanUp.push(() => started.close());
  return started;
}
const misbehaving = (what: Misbehaviour | ((request: PlantRequest) => Misbehaviour | undefined)) =>
  plant({ misbehave: typeof what === "function" ? what : () => what });

async function failureOf(work: Promise<unknown>): Promise<ReasonError | FaultError> {
  const error = await work.then(
    (value) => new Error(`it gave ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  );
  if (error instanceof ReasonError || error instanceof FaultError) return error;
  throw error;
}

// MODBUS Application Protocol V1.1b3, 6.1 to 6.4, the examples' PDUs behind the header of the Messaging Guide, 3.1.3.
describe("the conversations of the specification", () => {
  const good = (value: Value) => ({ quality: "good", value });
  it.each([
    [
      "6.1 read coils 20 to 38",
      "coil:19[19]",
      "0001 0000 0006 01 01 0013 0013",
      "0001 0000 0006 01 01 03 cd6b05",
      [true, false, true, true, false, false, true, true, true, true, false, true, false, true, true, false, true, false, true],
    ],
    [
      "6.2 read discrete inputs 197 to 218",
      "discrete:196[22]",
      "0001 0000 0006 01 02 00c4 0016",
      "0001 0000 0006 01 02 03 acdb35",
      [0, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1].map((bit) => bit === 1),
    ],
    [
      "6.3 read holding registers 108 to 110",
      "holding:107[3]",
      "0001 0000 0006 01 03 006b 0003",
      "0001 0000 0009 01 03 06 022b 0000 0064",
      [555, 0, 100],
    ],
    ["6.4 read input register 9", "input:8", "0001 0000 0006 01 04 0008 0001", "0001 0000 0005 01 04 02 000a", 10],
  ])("%s", async (_, address, request, answer, value) => {
    const server = await scripted([[request, answer]]);
    const { session, settings } = await open(server.port);
    expect(await session.read(requestFor(session, settings, address), context())).toEqual([good(value)]);
    expect(server.got).toEqual([hex(request).toString("hex")]);
  });
});

describe("reading", () => {
  it("reads the same wherever the answer is split in two, on a real socket", async () => {
    const answer = hex("0001 0000 0009 01 03 06 022b 0000 0064");
    for (let cut = 1; cut < answer.length; cut++) {
      const server = net.createServer({ noDelay: true }, (socket) => {
        socket.on("error", () => {});
        socket.once("data", (asked) => {
          // Transaction ids go on where this port was another server's before.
          answer.set(asked.subarray(0, 2));
          socket.write(answer.subarray(0, cut), () => setTimeout(() => socket.end(answer.subarray(cut)), 2));
        });
      });
      await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
      const { session, settings } = await open((server.address() as AddressInfo).port);
      expect(await session.read(requestFor(session, settings, "holding:107[3]"), context())).toEqual([
        { quality: "good", value: [555, 0, 100] },
      ]);
      await session.close();
      await new Promise((done) => server.close(done));
    }
  });

  it("takes an answer from unit 0 or 255 whoever was asked", async () => {
    for (const unit of [0, 255]) {
      const device = await misbehaving({
        change: (frame) => {
          frame[6] = unit;
          return frame;
        },
      });
      const { session, settings } = await open(device.port);
      expect(await session.read(requestFor(session, settings, "holding:5"), context())).toEqual([{ quality: "good", value: 5 }]);
    }
  });

  it("says which exception it was, for what, and goes on on the same connection", async () => {
    const codes = [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 99];
    let next = 0;
    const device = await misbehaving(() => {
      const exception = codes[next++];
      return exception === undefined ? undefined : { exception };
    });
    const { session, settings } = await open(device.port);
    const request = requestFor(session, settings, "holding:10", "holding:12");
    const seen: unknown[] = [];
    for (const code of codes) {
      const failure = await failureOf(session.read(request, context()));
      expect(failure.message).toMatch(new RegExp(`^exception ${code} \\(.+\\) for holding registers 10\\.\\.12 of unit 1`));
      if (failure instanceof FaultError) seen.push(failure.fault);
      if (code >= 10 && code <= 11)
        expect(failure.message).toContain(
          `the gateway 127.0.0.1:${device.port} answers, unit 1 behind it does not (a device without a gateway may answer as unit 255 or 0)`,
        );
    }
    const broken = "device_error";
    expect(seen).toEqual([
      "not_found",
      "not_found",
      "out_of_range",
      broken,
      broken,
      broken,
      broken,
      broken,
      "no_answer",
      "no_answer",
      broken,
    ]);
    expect(await session.read(request, context())).toEqual([
      { quality: "good", value: 10 },
      { quality: "good", value: 12 },
    ]);
    expect(device.accepted()).toBe(1);
  });

  it("takes a value that is no number for a fault of that variable alone", async () => {
    const device = await plant({ units: new Map([[1, registers(0x7fc0, 0, 7)]]) });
    const { session, settings } = await open(device.port);
    expect(await session.read(requestFor(session, settings, "holding:0:float32", "holding:2"), context())).toEqual([
      { quality: "bad", fault: "not_a_number", detail: "NaN" },
      { quality: "good", value: 7 },
    ]);
  });

  it("keeps its connection or not as the details say", () => {
    const details = (more: object) => driver.details.parse({ type: "modbus_tcp", host: "plc", ...more });
    expect(driver.keepsConnection(details({}), {})).toBe(false);
    expect(driver.keepsConnection(details({ ephemeral_connections: false }), {})).toBe(true);
    expect(driver.endpoint(details({}), driver.settings.parse({}))).toEqual({ host: "plc", port: 502, transport: "tcp" });
    expect(driver.maxConnections).toBe(1);
  });

  it("gives the same limits for the same settings, so that nothing is planned again after a reconnect", async () => {
    const device = await plant();
    const settings = driver.settings.parse({ max_registers: 20 });
    const details = driver.details.parse({ type: "modbus_tcp", host: "127.0.0.1", port: device.port });
    const [first, second] = await Promise.all([1, 2].map(() => driver.connect({ details, settings, secrets: {} }, context())));
    expect(first?.limits).toBe(second?.limits);
    expect(first?.limits).toMatchObject({ maxRegisters: 20, inFlight: 1 });
    await Promise.all([first?.close(), second?.close()]);
  });
});

describe("what Modbus clients get wrong", () => {
  it("an RST during a request is CONNECTION_RESET at once, not a time-out", async () => {
    const device = await misbehaving({ hangUp: "rst" });
    const { session, settings } = await open(device.port);
    const started = performance.now();
    expect(await failureOf(session.read(requestFor(session, settings, "holding:0"), context()))).toMatchObject({
      reason: { type: "CONNECTION_RESET" },
      cause: { code: "ECONNRESET" },
    });
    expect(performance.now() - started).toBeLessThan(3000);
    expect(session.alive()).toBe(false);
  });

  it("a FIN during a request is CONNECTION_CLOSED at once, not a time-out", async () => {
    const device = await misbehaving({ hangUp: "fin" });
    const { session, settings } = await open(device.port);
    const started = performance.now();
    expect(await failureOf(session.read(requestFor(session, settings, "holding:0"), context()))).toMatchObject({
      reason: { type: "CONNECTION_CLOSED" },
    });
    expect(performance.now() - started).toBeLessThan(3000);
  });

  it("a closed connection is CONNECTION_CLOSED, not ECONNREFUSED", async () => {
    const device = await plant();
    const { session, settings } = await open(device.port);
    await session.close();
    expect(await failureOf(session.read(requestFor(session, settings, "holding:0"), context()))).toMatchObject({
      reason: { type: "CONNECTION_CLOSED" },
    });
  });

  it("bytes that are no Modbus are a protocol violation at once, not a time-out", async () => {
    for (const bytes of [Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"), hex("0001 0000 ffff 01 03"), hex("0001 0000 0000 01 03")]) {
      const device = await misbehaving({ bytes });
      const { session, settings } = await open(device.port);
      const started = performance.now();
      expect(await failureOf(session.read(requestFor(session, settings, "holding:0"), context()))).toMatchObject({
        reason: { type: "UNKNOWN" },
        condition: "protocol_violation",
      });
      expect(performance.now() - started).toBeLessThan(3000);
      await expect.poll(() => device.connections()).toBe(0);
    }
  });

  it("more than 16 requests in flight are impossible", async () => {
    const device = await misbehaving({ delayMs: 50 });
    const { session, settings } = await open(device.port, { in_flight: 16 });
    const requests = Array.from({ length: 17 }, (_, i) => requestFor(session, settings, `holding:${i}`));
    const outcomes = await Promise.allSettled(requests.map((request) => session.read(request, context())));
    expect(outcomes.slice(0, 16).map((outcome) => outcome.status === "fulfilled" && outcome.value[0])).toEqual(
      Array.from({ length: 16 }, (_, value) => ({ quality: "good", value })),
    );
    expect(outcomes[16]).toMatchObject({ status: "rejected", reason: { condition: "internal_error" } });
    expect(driver.settings.safeParse({ in_flight: 17 }).success).toBe(false);
  });

  it("units do not mix while several requests are in flight", async () => {
    const units = new Map(Array.from({ length: 9 }, (_, unit) => [unit, registers(unit * 100)] as const));
    const device = await plant({ units, misbehave: ({ unit }) => ({ delayMs: (9 - unit) * 5 }) });
    const { session, settings } = await open(device.port, { in_flight: 9 });
    const readings = await Promise.all(
      Array.from({ length: 9 }, (_, unit) => session.read(requestFor(session, settings, `${unit}/holding:0`), context())),
    );
    expect(readings).toEqual(Array.from({ length: 9 }, (_, unit) => [{ quality: "good", value: unit * 100 }]));
  });

  it("an answer that holds more or less than was asked for is a fault, and costs neither connection nor neighbours", async () => {
    const miscounts: Misbehaviour = {
      change: (frame) => Buffer.concat([frame.subarray(0, 4), Buffer.of(0, 7), frame.subarray(6, 8), Buffer.of(4, 0, 1, 0, 2)]),
    };
    const device = await plant({ misbehave: ({ start }) => (start === 5 ? miscounts : undefined) });
    const { session, settings } = await open(device.port, { in_flight: 3 });
    const read = (address: string) => session.read(requestFor(session, settings, address), context());
    const [before, wrong, after] = await Promise.all([
      read("holding:4"),
      read("holding:5").catch((error: unknown) => error),
      read("holding:6"),
    ]);
    expect([before, after]).toEqual([[{ quality: "good", value: 4 }], [{ quality: "good", value: 6 }]]);
    expect(wrong).toMatchObject({
      fault: "device_error",
      scope: "points",
      message: expect.stringContaining("4 bytes for 1 holding registers"),
    });
    expect(await read("holding:7")).toEqual([{ quality: "good", value: 7 }]);
    expect(device.accepted()).toBe(1);
  });

  it("an answer for another unit or function, or of another length than it says, is a protocol violation", async () => {
    for (const change of [
      (frame: Buffer) => Buffer.concat([frame.subarray(0, 6), Buffer.of(7), frame.subarray(7)]),
      (frame: Buffer) => Buffer.concat([frame.subarray(0, 7), Buffer.of(4), frame.subarray(8)]),
      (frame: Buffer) => Buffer.concat([frame.subarray(0, 4), Buffer.of(0, 7), frame.subarray(6, 8), Buffer.of(2, 0, 1, 0, 2)]),
    ]) {
      const device = await misbehaving({ change });
      const { session, settings } = await open(device.port);
      expect(await failureOf(session.read(requestFor(session, settings, "holding:0"), context()))).toMatchObject({
        condition: "protocol_violation",
      });
    }
  });

  it("an answer with the id of no request is left aside and told with the time-out", async () => {
    const device = await misbehaving({
      change: (frame) => {
        frame.writeUInt16BE(frame.readUInt16BE(0) + 1, 0);
        return frame;
      },
    });
    const { session, settings } = await open(device.port);
    const failure = await failureOf(session.read(requestFor(session, settings, "holding:0"), context(100)));
    expect(failure).toMatchObject({ reason: { type: "TIMEOUT" } });
    expect(failure.message).toBe(
      "no answer within 100 ms to holding register 0 of unit 1 (answers with a transaction id of no request: 1)",
    );
  });

  it("an answer that is sent twice is taken once", async () => {
    const device = await misbehaving({ change: (frame) => Buffer.concat([frame, frame]) });
    const { session, settings } = await open(device.port);
    for (let i = 0; i < 50; i++)
      expect(await session.read(requestFor(session, settings, `holding:${i}`), context())).toEqual([{ quality: "good", value: i }]);
  });

  it("after a time-out the connection is closed: a late answer meets no later request", async () => {
    const device = await misbehaving({ delayMs: 200 });
    const { session, settings } = await open(device.port);
    const request = requestFor(session, settings, "holding:0");
    expect(await failureOf(session.read(request, context(30)))).toMatchObject({ reason: { type: "TIMEOUT" } });
    expect(session.alive()).toBe(false);
    expect(await failureOf(session.read(request, context()))).toMatchObject({ reason: { type: "TIMEOUT" } });
    await expect.poll(() => device.connections()).toBe(0);
  });

  it("a second connection that is taken and never served is TIMEOUT", async () => {
    const device = await plant({ maxConnections: 1 });
    await open(device.port);
    const { session, settings } = await open(device.port);
    expect(await failureOf(session.read(requestFor(session, settings, "holding:0"), context(100)))).toMatchObject({
      reason: { type: "TIMEOUT" },
    });
  });
});

it("answers any bytes with readings, a fault or a reason", async () => {
  let bytes: Uint8Array = new Uint8Array();
  const device = await misbehaving(() => ({ bytes }));
  const settings = driver.settings.parse({});
  const details = driver.details.parse({ type: "modbus_tcp", host: "127.0.0.1", port: device.port });
  // Half of them begin with a good header, so that they get past it.
  const anyBytes = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 300 }),
    fc.uint8Array({ minLength: 2, maxLength: 254 }).map((rest) => Buffer.concat([Buffer.of(0, 1, 0, 0, 0, rest.length), rest])),
    fc.uint8Array({ maxLength: 250 }).map((rest) => Buffer.concat([Buffer.of(0, 1, 0, 0, 0, rest.length + 2, 1, 3), rest])),
  );
  await fc.assert(
    fc.asyncProperty(anyBytes, async (answer) => {
      bytes = answer;
      const session = await driver.connect({ details, settings, secrets: {} }, context());
      const outcome = await session
        .read(requestFor(session, settings, "holding:0", "holding:3:float32"), context(20))
        .catch((error: unknown) => error);
      if (Array.isArray(outcome)) expect(outcome).toHaveLength(2);
      else expect(outcome instanceof ReasonError || outcome instanceof FaultError).toBe(true);
      await session.close();
    }),
    { numRuns: 150 },
  );
});

describe("settings of one source", () => {
  const units = new Map<number, PlantUnit>([[1, { holding: new Map([[0, 1]]) }]]);

  it("leave at least min_pause between an answer and the next request", async () => {
    const at: number[] = [];
    const plant = await startModbusPlant({
      units,
      misbehave: () => {
        at.push(performance.now());
        return undefined;
      },
    });
    cleanUp.push(plant.close);
    const { session, settings } = await open(plant.port, { min_pause: 60 });
    const request = requestFor(session, settings, "holding:0");
    for (let i = 0; i < 3; i++) await session.read(request, context());
    // Timers fire up to a millisecond early.
    for (let i = 1; i < at.length; i++) expect((at[i] ?? 0) - (at[i - 1] ?? 0)).toBeGreaterThan(58);
  });

  it("end a pause when the signal aborts", async () => {
    const plant = await startModbusPlant({ units });
    cleanUp.push(plant.close);
    const { session, settings } = await open(plant.port, { min_pause: 60_000 });
    const request = requestFor(session, settings, "holding:0");
    await session.read(request, context());
    const stop = new AbortController();
    const reading = session.read(request, { ...context(), signal: stop.signal });
    stop.abort();
    await expect(reading).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
  });

  it("do not part sources that use one connection: units, orders and sizes are each request's own", () => {
    const details = driver.details.parse({ type: "modbus_tcp", host: "10.0.0.1", port: 502 });
    const [one, two] = [driver.settings.parse({ unit: 1 }), driver.settings.parse({ unit: 2, max_registers: 10, in_flight: 4 })];
    expect(driver.connectionKey?.(details, one)).toBe(driver.connectionKey?.(details, two));
    const granted = { maxPoints: 1, maxBytes: 1, inFlight: 1 };
    expect(driver.limits?.(granted, two)).toMatchObject({ maxRegisters: 10, inFlight: 4 });
    expect(driver.limits?.(granted, two)).toBe(driver.limits?.(granted, two));
  });
});

describe("exceptions", () => {
  it.each([
    [2, "points"],
    [3, "points"],
    [4, "points"],
    [5, "busy"],
    [6, "busy"],
    [10, "silent"],
    [11, "silent"],
    [99, "points"],
  ] as const)("%i is about %s", async (exception, scope) => {
    const plant = await startModbusPlant({ units: new Map(), misbehave: () => ({ exception }) });
    cleanUp.push(plant.close);
    const { session, settings } = await open(plant.port);
    const request = requestFor(session, settings, "holding:0");
    expect(request.part).toBe("unit 1");
    await expect(session.read(request, context())).rejects.toMatchObject({ name: "FaultError", scope });
  });
});
