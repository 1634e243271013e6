import dgram from "node:dgram";
import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { silentLog } from "../../src/model/context.ts";
import { FaultError } from "../../src/model/fault.ts";
import type { AnySession, DriverContext } from "../driver.ts";
import driver from "./driver.ts";
import { checksum } from "./simulator.ts";

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const ANSWER_MS = 60;
/** Shorter, as the agent asks what was silent. */
const PROBE_MS = 15;

/** Mulberry32: the same troubles in each run of one seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const registerOf = (unit: number, code: number, register: number): number => (register * 2654435761 + unit * 977 + code * 31) & 0xffff;

type Form = "rtu" | "tcp_without_ids";

/** The right answer to a request, without header and CRC. */
function bodyOf(unit: number, code: number, start: number, count: number): number[] {
  const data = Array.from({ length: count }, (_, i) => registerOf(unit, code, start + i));
  if (code > 2) return [unit, code, count * 2, ...data.flatMap((value) => [value >> 8, value & 0xff])];
  const bytes = new Array<number>(Math.ceil(count / 8)).fill(0);
  for (const [i, value] of data.entries()) if (value % 2 === 1) bytes[i >> 3] = (bytes[i >> 3] ?? 0) | (1 << (i & 7));
  return [unit, code, bytes.length, ...bytes];
}

const framed = (form: Form, body: readonly number[]): Buffer =>
  form === "rtu" ? Buffer.from([...body, ...checksum(body)]) : Buffer.from([0, 0, 0, 0, 0, body.length, ...body]);

interface Line {
  isWell: boolean;
  readonly port: number;
}

/** One answer with a trouble: its pieces, with the time of each, ms. */
function troubled(form: Form, request: Buffer, body: number[], doubles: boolean, random: () => number): [atMs: number, Buffer][] {
  const right = framed(form, body);
  const [unit = 0, code = 0] = body;
  const noise = () => Buffer.from(Array.from({ length: 1 + Math.floor(random() * 20) }, () => Math.floor(random() * 256)));
  const isSerial = form === "rtu";
  switch (Math.floor(random() * 14)) {
    case 0:
      return [];
    case 1:
      // Later than a probe waits, and not twice as late.
      return [[PROBE_MS * (1 + random() / 2), right]];
    case 2: {
      const at = Math.floor(random() * right.length);
      return [
        [0, right.subarray(0, at)],
        [3, right.subarray(at)],
      ];
    }
    case 3:
      return isSerial ? [[0, Buffer.concat([noise(), right])]] : [[0, right]];
    case 4:
      return isSerial ? [[0, Buffer.concat([request, right])]] : [[0, right]];
    case 5: {
      const damaged = Buffer.from(right);
      if (isSerial) damaged.writeUInt8(damaged.readUInt8(damaged.length - 3) ^ (1 << Math.floor(random() * 8)), damaged.length - 3);
      return [[0, damaged]];
    }
    case 6:
      return [[0, Buffer.concat([framed(form, [(unit % 200) + 1, ...body.slice(1)]), right])]];
    case 7:
      return [
        [0, framed(form, bodyOf(unit, code, 9000, 3))],
        [5, right],
      ];
    case 8:
      return [[0, framed(form, [unit, code | 0x80, 6])]];
    case 9:
      return [[0, right.subarray(0, Math.floor(random() * right.length))]];
    case 10:
      return doubles
        ? [
            [0, right],
            [random() * 8, right],
          ]
        : [[0, right]];
    case 11:
      return isSerial
        ? [
            [0, right],
            [1, noise()],
          ]
        : [[0, right]];
    case 12:
      return [...right].map((byte, i): [number, Buffer] => [i, Buffer.of(byte)]);
    default:
      return [[random() * 4, right]];
  }
}

/** One after the other: timers of their own could change places. */
async function inTurn(pieces: readonly [atMs: number, Buffer][], send: (bytes: Buffer) => void): Promise<void> {
  let sinceMs = 0;
  for (const [atMs, bytes] of pieces) {
    if (atMs > sinceMs) await delay(atMs - sinceMs);
    sinceMs = atMs;
    if (bytes.length > 0) send(bytes);
  }
}

async function startLine(form: Form, transport: "tcp" | "udp", seed: number): Promise<Line> {
  const random = randomOf(seed);
  const line = { isWell: false, port: 0 };
  const answer = (request: Buffer, send: (bytes: Buffer) => void, hangUp: () => void): void => {
    const body = form === "rtu" ? request.subarray(0, -2) : request.subarray(6);
    const [unit = 0, code = 0] = body;
    const right = bodyOf(unit, code, body.readUInt16BE(2), body.readUInt16BE(4));
    if (!line.isWell && random() < 0.03) {
      hangUp();
      return;
    }
    const pieces: [number, Buffer][] = line.isWell
      ? [[0, framed(form, right)]]
      : troubled(form, request, right, transport === "udp", random);
    void inTurn(pieces, send);
  };
  if (transport === "udp") {
    const socket = dgram.createSocket("udp4");
    let isOpen = true;
    socket.on("message", (request, from) =>
      answer(
        request,
        (bytes) => void (isOpen && socket.send(bytes, from.port, from.address, () => {})),
        () => {},
      ),
    );
    await new Promise<void>((ready) => socket.bind(0, "127.0.0.1", ready));
    cleanUp.push(() => {
      isOpen = false;
      socket.close();
    });
    return Object.assign(line, { port: socket.address().port });
  }
  // A serial server gives what comes from its line to whoever is connected.
  let client: net.Socket | undefined;
  const server = net.createServer((socket) => {
    client = socket;
    socket.setNoDelay(true);
    let held = Buffer.alloc(0);
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      held = Buffer.concat([held, bytes]);
      const length = form === "rtu" ? 8 : 12;
      while (held.length >= length) {
        answer(
          Buffer.from(held.subarray(0, length)),
          (out) => client?.write(out),
          () => socket.destroy(),
        );
        held = held.subarray(length);
      }
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", () => ready()));
  cleanUp.push(() => server.close());
  cleanUp.push(() => client?.destroy());
  return Object.assign(line, { port: (server.address() as net.AddressInfo).port });
}

const FORMS: readonly (readonly [Form, "tcp" | "udp"])[] = [
  ["rtu", "tcp"],
  ["rtu", "udp"],
  ["tcp_without_ids", "tcp"],
  ["tcp_without_ids", "udp"],
];

const ADDRESSES: readonly string[] = [
  ...Array.from({ length: 8 }, (_, i) => `holding:${i * 50}[4]`),
  ...Array.from({ length: 8 }, (_, i) => `2/holding:${i * 50}[4]`),
  "input:0[4]",
  "coil:800[20]",
  "discrete:775[17]",
  "holding:1000[40]",
];

describe.each(FORMS)("%s over %s", (form, transport) => {
  it.each([1, 2, 3, 4, 5])(
    "gives no value of another request, whatever comes over the line, and all of them once it is well (seed %i)",
    { timeout: 120_000 },
    async (seed) => {
      const line = await startLine(form, transport, seed);
      const random = randomOf(seed + 1000);
      const settings = driver.settings.parse({ framing: form, transport });
      const details = driver.details.parse({ type: "modbus_tcp", host: "127.0.0.1", port: line.port, ephemeral_connections: false });
      const context = (answerMs: number): DriverContext => ({
        signal: AbortSignal.timeout(5000),
        log: silentLog,
        timeouts: { nameMs: 1000, connectMs: 1000, answerMs },
      });
      let session: AnySession | undefined;
      cleanUp.push(() => session?.close());
      const read = async (address: string, answerMs: number): Promise<readonly unknown[] | undefined> => {
        if (!session?.alive()) session = await driver.connect({ details, settings, secrets: {} }, context(ANSWER_MS));
        const [request] = driver.plan([{ index: 0, ...driver.parseAddress(address, undefined, settings) }], session.limits);
        if (!request) throw new Error("nothing planned");
        try {
          const [reading] = await session.read(request, context(answerMs));
          return reading?.quality === "good" ? (reading.value as unknown as unknown[]) : [];
        } catch (error) {
          if (!(error instanceof FaultError)) {
            await session.close();
            session = undefined;
          }
          return undefined;
        }
      };
      const wantedOf = (address: string): readonly unknown[] => {
        const { address: place } = driver.parseAddress(address, undefined, settings) as {
          address: { unit: number; functionCode: number; start: number; length: number };
        };
        const values = Array.from({ length: place.length }, (_, i) => registerOf(place.unit, place.functionCode, place.start + i));
        return place.functionCode <= 2 ? values.map((value) => value % 2 === 1) : values;
      };
      let good = 0;
      for (let n = 0; n < 120; n++) {
        const address = ADDRESSES[Math.floor(random() * ADDRESSES.length)] ?? "";
        const values = await read(address, random() < 0.3 ? PROBE_MS : ANSWER_MS);
        if (values === undefined) continue;
        good++;
        expect(values, `${n} ${address}`).toEqual(wantedOf(address));
      }
      expect(good).toBeGreaterThan(20);
      line.isWell = true;
      // The last of the troubles may reach it.
      await read("holding:0[4]", ANSWER_MS);
      for (const address of ADDRESSES) expect(await read(address, ANSWER_MS), address).toEqual(wantedOf(address));
    },
  );
});
