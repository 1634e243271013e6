import dgram from "node:dgram";
import type { Socket } from "node:net";
import { DeviceServer } from "../../simulators/kit/device-server.ts";
import { type Cut, FramedConnection } from "../../simulators/kit/framed-connection.ts";
import type { Value } from "../../src/model/value.ts";
import type { Listening, Simulator, StartSimulator } from "../simulator.ts";

/** A register (0..65535) or a coil (0 or 1); a function of the time in ms since the start changes by itself. */
export type Cell = number | ((ms: number) => number);
/** By zero-based address; what is not in it answers exception 2. */
export type Table = Map<number, Cell>;

/** What one unit holds. An area that is absent answers exception 1. */
export interface PlantUnit {
  readonly holding?: Table;
  readonly input?: Table;
  readonly coil?: Table;
  readonly discrete?: Table;
  /** Holding registers of 32 bits, by the register that a read begins with. */
  readonly holding32?: Table;
  /** Records by file. */
  readonly files?: ReadonlyMap<number, Table>;
  /** Vendor, product code, revision. Absent: the unit does not know function 43. */
  readonly identification?: readonly string[];
}

export interface PlantRequest {
  readonly unit: number;
  readonly functionCode: number;
  readonly start: number;
  readonly count: number;
}

/** What the plant does instead of answering well. */
export type Misbehaviour =
  | { readonly exception: number }
  | { readonly silent: true }
  /** The good answer, late. */
  | { readonly delayMs: number }
  /** These bytes as they are; the request's transaction id does not go into them. */
  | { readonly bytes: Uint8Array }
  /** The good answer, changed. */
  | { readonly change: (frame: Buffer) => Buffer }
  | { readonly hangUp: "fin" | "rst" };

export interface ModbusPlantOptions {
  readonly port?: number;
  readonly host?: string;
  /** Absent: TCP. */
  readonly transport?: "tcp" | "udp";
  /** `rtu`: unit, PDU and CRC. `zero_ids`: every answer has the transaction id 0. Absent: with a header. */
  readonly framing?: "rtu" | "zero_ids";
  readonly units: ReadonlyMap<number, PlantUnit>;
  /** Registers in one read; more answers exception 3. */
  readonly maxRegisters?: number;
  /** Connections at once; further ones are accepted and never answered, as many controllers do. */
  readonly maxConnections?: number;
  /** Each answer takes so long, ms, and what comes over the connection meanwhile is lost; undefined: it takes no time. */
  readonly oneAtATimeMs?: () => number | undefined;
  /** Asked for every request. */
  readonly misbehave?: (request: PlantRequest) => Misbehaviour | undefined;
}

export interface ModbusPlant {
  readonly port: number;
  /** Open now. */
  connections(): number;
  /** Since the start. */
  accepted(): number;
  requests(): number;
  close(): Promise<void>;
}

type NumberType = "int16" | "uint16" | "int32" | "uint32" | "int64" | "uint64" | "float32" | "float64";

/** The registers of a value, most significant first (order ABCD). */
export function registersOf(type: NumberType, value: number | bigint): number[] {
  const bytes = Buffer.alloc(type.endsWith("64") ? 8 : type.endsWith("32") ? 4 : 2);
  if (type === "int64") bytes.writeBigInt64BE(BigInt(value));
  else if (type === "uint64") bytes.writeBigUInt64BE(BigInt(value));
  else if (type === "float64") bytes.writeDoubleBE(Number(value));
  else if (type === "float32") bytes.writeFloatBE(Number(value));
  else if (type === "int32") bytes.writeInt32BE(Number(value));
  else if (type === "uint32") bytes.writeUInt32BE(Number(value));
  else if (type === "int16") bytes.writeInt16BE(Number(value));
  else bytes.writeUInt16BE(Number(value));
  return Array.from({ length: bytes.length >> 1 }, (_, i) => bytes.readUInt16BE(i * 2));
}

/** The registers of a text, two characters each, the first in the high byte; filled with NUL. */
export function registersOfText(text: string, registers: number): number[] {
  const bytes = Buffer.alloc(registers * 2);
  bytes.write(text);
  return Array.from({ length: registers }, (_, i) => bytes.readUInt16BE(i * 2));
}

/** The registers of decimal digits, four bits each; four of them a register. */
export const registersOfDigits = (digits: string): number[] => (digits.match(/.{4}/g) ?? []).map((four) => Number.parseInt(four, 16));

/** Puts values at an address and the ones after it. */
export function put(table: Table, address: number, cells: readonly Cell[]): void {
  for (const [i, cell] of cells.entries()) table.set(address + i, cell);
}

/** Puts a value that changes with the time; all its registers are of one moment. */
export function putChanging(table: Table, address: number, type: NumberType, value: (ms: number) => number): void {
  for (let i = 0; i < registersOf(type, 0).length; i++) table.set(address + i, (ms) => registersOf(type, value(ms))[i] ?? 0);
}

const AREA_OF_FUNCTION = { 1: "coil", 2: "discrete", 3: "holding", 4: "input" } as const;

/** MODBUS over Serial Line V1.02, 6.2.2, bit by bit. */
export function checksum(bytes: Iterable<number>): readonly [low: number, high: number] {
  let crc = 0xffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc % 2 === 1 ? (crc >> 1) ^ 0xa001 : crc >> 1;
  }
  return [crc % 256, crc >> 8];
}

/** Requests on a serial line have their length by function alone. */
const cutSerial: Cut = (bytes) => {
  if (bytes.length < 3) return "more";
  const [, code = 0, count = 0] = bytes;
  if (code === 20) return 5 + count;
  return code === 43 ? 7 : code >= 1 && code <= 6 ? 8 : "wrong";
};

const cutFrame: Cut = (bytes) => {
  if (bytes.length < 8) return "more";
  const length = 6 + bytes.readUInt16BE(4);
  return bytes.readUInt16BE(2) !== 0 || length < 8 || length > 260 ? "wrong" : length;
};

class PlantConnection extends FramedConnection {
  readonly #serve: (connection: PlantConnection, frame: Buffer) => void;
  isBusy = false;

  constructor(socket: Socket, cut: Cut, isServed: boolean, serve: (connection: PlantConnection, frame: Buffer) => void) {
    super(socket, cut);
    this.isDeaf = !isServed;
    this.#serve = serve;
  }

  send(bytes: Uint8Array): void {
    this.write(bytes);
  }

  destroy(): void {
    this.socket.destroy();
  }

  protected override onFrame(frame: Buffer): void {
    this.#serve(this, frame);
  }

  protected override onGarbage(): void {
    this.destroy();
  }
}

/** A Modbus TCP device, or a gateway with several units. A unit that is not there answers exception 11, as a gateway does. */
export async function startModbusPlant(options: ModbusPlantOptions): Promise<ModbusPlant> {
  const began = performance.now();
  let accepted = 0;
  let requests = 0;

  const serve = (connection: Client, frame: Buffer): void => {
    requests++;
    if (connection.isBusy) return;
    const isSerial = options.framing === "rtu";
    const body = isSerial ? frame.subarray(0, -2) : frame.subarray(6);
    // A damaged request is left without an answer. MODBUS over Serial Line V1.02, 2.4.2.
    if (isSerial && !frame.subarray(-2).equals(Buffer.from(checksum(body)))) return;
    const [unit = 0, functionCode = 0] = body;
    const readsCells = body.length === 6 && functionCode >= 1 && functionCode <= 4;
    const request = { unit, functionCode, start: readsCells ? body.readUInt16BE(2) : 0, count: readsCells ? body.readUInt16BE(4) : 0 };
    const odd = options.misbehave?.(request);
    if (odd && "silent" in odd) return;
    // The other units of a line are silent where one is missing.
    if (isSerial && !options.units.has(unit)) return;
    if (odd && "hangUp" in odd) {
      connection.hangUp(odd.hangUp);
      return;
    }
    if (odd && "bytes" in odd) {
      connection.send(odd.bytes);
      return;
    }
    const told =
      odd && "exception" in odd ? [functionCode | 0x80, odd.exception] : answerTo(request, body, options, performance.now() - began);
    const header = [...(options.framing === "zero_ids" ? [0, 0] : frame.subarray(0, 2)), 0, 0, 0, told.length + 1];
    const answer = isSerial ? Buffer.from([unit, ...told, ...checksum([unit, ...told])]) : Buffer.from([...header, unit, ...told]);
    const aloneMs = options.oneAtATimeMs?.();
    if (aloneMs !== undefined) {
      connection.isBusy = true;
      connection.after(aloneMs, () => {
        connection.isBusy = false;
        connection.send(answer);
      });
    } else if (odd && "delayMs" in odd) connection.after(odd.delayMs, () => connection.send(answer));
    else connection.send(odd && "change" in odd ? odd.change(answer) : answer);
  };

  if (options.transport === "udp") return startDatagrams(options, serve, () => requests);
  const server: DeviceServer<PlantConnection> = new DeviceServer((socket) => {
    accepted++;
    const isServed = server.connections.size < (options.maxConnections ?? Number.POSITIVE_INFINITY);
    return new PlantConnection(socket, options.framing === "rtu" ? cutSerial : cutFrame, isServed, serve);
  });
  await server.listen(options);
  return {
    port: server.port,
    connections: () => server.connections.size,
    accepted: () => accepted,
    requests: () => requests,
    close() {
      for (const connection of server.connections) connection.destroy();
      return server.close();
    },
  };
}

/** Who is answered: a connection, or the sender of datagrams. */
type Client = Pick<PlantConnection, "isBusy" | "send" | "hangUp" | "after">;

async function startDatagrams(
  { port = 0, host = "127.0.0.1" }: ModbusPlantOptions,
  serve: (client: Client, datagram: Buffer) => void,
  requests: () => number,
): Promise<ModbusPlant> {
  const socket = dgram.createSocket("udp4");
  const timers = new Set<NodeJS.Timeout>();
  let isBusy = false;
  socket.on("message", (datagram, { address, port: from }) => {
    const client: Client = {
      get isBusy() {
        return isBusy;
      },
      set isBusy(value) {
        isBusy = value;
      },
      send: (bytes) => socket.send(bytes, from, address, () => {}),
      hangUp: () => {},
      after(ms, then) {
        const timer = setTimeout(() => {
          timers.delete(timer);
          then();
        }, ms);
        timers.add(timer);
      },
    };
    if (datagram.length >= 4) serve(client, datagram);
  });
  await new Promise<void>((ready, failed) => socket.once("error", failed).bind(port, host, ready));
  return {
    port: socket.address().port,
    connections: () => 0,
    accepted: () => 0,
    requests,
    close() {
      for (const timer of timers) clearTimeout(timer);
      return new Promise((done) => socket.close(() => done()));
    },
  };
}

/** Function code and data of the answer, or the exception. */
function answerTo({ unit, functionCode, start, count }: PlantRequest, body: Buffer, options: ModbusPlantOptions, ms: number): number[] {
  const refuse = (code: number) => [functionCode | 0x80, code];
  if (functionCode === 20) return recordsOf(options.units.get(unit), body, ms) ?? refuse(2);
  if (functionCode === 43) return identificationOf(options.units.get(unit), body) ?? refuse(1);
  if (functionCode !== 1 && functionCode !== 2 && functionCode !== 3 && functionCode !== 4) return refuse(1);
  const held = options.units.get(unit);
  if (!held) return refuse(11);
  const table = held[AREA_OF_FUNCTION[functionCode]];
  if (!table) return refuse(1);
  if (functionCode === 3 && held.holding32?.has(start)) {
    const wide = cellsOf(held.holding32, start, count, ms);
    return wide && count <= 62 ? [3, count * 4, ...wide.flatMap((value) => [...longOf(value)])] : refuse(2);
  }
  const bits = functionCode <= 2;
  if (count < 1 || count > (bits ? 2000 : (options.maxRegisters ?? 125))) return refuse(3);
  const values = cellsOf(table, start, count, ms);
  if (!values) return refuse(2);
  if (!bits) return [functionCode, count * 2, ...values.flatMap((value) => [(value >> 8) & 0xff, value & 0xff])];
  const bytes = new Array<number>(Math.ceil(count / 8)).fill(0);
  for (const [i, value] of values.entries()) if (value) bytes[i >> 3] = (bytes[i >> 3] ?? 0) | (1 << (i & 7));
  return [functionCode, bytes.length, ...bytes];
}

/** The cells of a range; undefined: one of them does not exist. */
function cellsOf(table: Table, start: number, count: number, ms: number): number[] | undefined {
  const values: number[] = [];
  for (let address = start; address < start + count; address++) {
    const cell = table.get(address);
    if (cell === undefined) return undefined;
    values.push(typeof cell === "number" ? cell : cell(ms));
  }
  return values;
}

function longOf(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Function 20: one group of records. */
function recordsOf(unit: PlantUnit | undefined, body: Buffer, ms: number): number[] | undefined {
  if (body.length !== 10 || body[2] !== 7 || body[3] !== 6) return undefined;
  const table = unit?.files?.get(body.readUInt16BE(4));
  const values = table && cellsOf(table, body.readUInt16BE(6), body.readUInt16BE(8), ms);
  return values && [20, 2 + values.length * 2, 1 + values.length * 2, 6, ...values.flatMap((value) => [value >> 8, value & 0xff])];
}

/** Function 43/14: one object in each answer, so that a client has to ask on. */
function identificationOf(unit: PlantUnit | undefined, body: Buffer): number[] | undefined {
  const { identification } = unit ?? {};
  const [object = 0] = body.subarray(4);
  const text = identification?.[object];
  if (!identification || text === undefined || body[2] !== 14 || body[3] !== 1) return undefined;
  const hasMore = object + 1 < identification.length;
  return [43, 14, 1, 1, hasMore ? 0xff : 0, hasMore ? object + 1 : 0, 1, object, text.length, ...Buffer.from(text, "latin1")];
}

const swapBytes = (register: number): number => ((register & 0xff) << 8) | (register >> 8);

/**
 * Two units with a value of every type, gaps between them, and nothing at holding register 500; and what of it a driver has to read. A table,
 * and so as long as it is.
 */
function standardPlant(): { readonly units: ReadonlyMap<number, PlantUnit>; readonly variables: Simulator["variables"] } {
  const holding: Table = new Map();
  const input: Table = new Map();
  const coil: Table = new Map();
  const discrete: Table = new Map();
  const second: Table = new Map();
  const holding32: Table = new Map();
  const records: Table = new Map();
  const variables: { address: string; type: string; value: Value }[] = [];
  const has = (address: string, type: string, value: Value) => variables.push({ address, type, value });

  put(holding, 0, registersOf("int16", -7));
  has("holding:0", "int16", -7);
  put(holding, 1, registersOf("uint32", 3_000_000_000));
  has("holding:1", "uint32", 3_000_000_000);
  put(holding, 3, registersOf("float32", 1.5));
  has("holding:3", "float32", 1.5);
  put(holding, 5, registersOf("uint64", 9_007_199_254_740_993n));
  has("holding:5", "uint64", 9_007_199_254_740_993n);
  put(holding, 9, registersOf("int64", -9_007_199_254_740_993n));
  has("holding:9", "int64", -9_007_199_254_740_993n);
  put(holding, 13, registersOf("float64", -2.25e-300));
  has("holding:13", "float64", -2.25e-300);
  put(holding, 17, registersOf("int32", -2_000_000_000));
  has("holding:17", "int32", -2_000_000_000);
  put(holding, 19, [0x12f4, 0xab80, 65_535]);
  has("holding:19", "int8", -12);
  has("holding:20", "uint8", 128);
  has("holding:21", "uint16", 65_535);
  has("40022", "uint16", 65_535);
  has("400022", "uint16", 65_535);

  // Registers 22 to 29 do not exist.
  put(holding, 30, registersOf("float32", -12.625).reverse());
  has("holding:30@CDAB", "float32", -12.625);
  put(holding, 32, registersOf("float32", 1e10).map(swapBytes));
  has("holding:32@BADC", "float32", Math.fround(1e10));
  put(holding, 34, registersOf("uint32", 0x01020304).reverse().map(swapBytes));
  has("holding:34@DCBA", "uint32", 0x01020304);
  put(holding, 36, registersOf("float64", Math.PI).reverse());
  has("holding:36@CDAB", "float64", Math.PI);
  put(holding, 40, registersOf("int64", -5n).map(swapBytes));
  has("holding:40@BADC", "int64", -5n);
  put(holding, 44, registersOf("uint64", 0x0102030405060708n).reverse().map(swapBytes));
  has("holding:44@DCBA", "uint64", 0x0102030405060708n);
  put(holding, 48, registersOf("int16", -2).map(swapBytes));
  has("holding:48@DCBA", "int16", -2);

  put(holding, 60, registersOfText("Presse 1", 10));
  has("holding:60", "string(20)", "Presse 1");
  put(holding, 70, registersOfText("Mühle", 3).map(swapBytes));
  has("holding:70@BADC", "string(6)", "Mühle");
  put(holding, 73, [0b1000_0000_0000_0101, 0b1]);
  has("holding:73.0", "bool", true);
  has("holding:73.1", "bool", false);
  has("holding:73.15", "bool", true);
  has("holding:73.14[3]", "bool", [false, true, true]);
  put(
    holding,
    80,
    [0.5, -1, 4096].flatMap((value) => registersOf("float32", value)),
  );
  has("holding:80[3]", "float32", [0.5, -1, 4096]);
  has("holding:80", "float32[3]", [0.5, -1, 4096]);
  put(holding, 86, registersOfDigits("1998"));
  has("holding:86", "BCD", 1998);
  put(holding, 87, registersOfDigits("12345678").reverse());
  has("holding:87@CDAB", "LBCD", 12_345_678);
  // The lowest four digits first, as meters have their energy.
  put(holding, 89, [4567, 123, 0, 0]);
  has("holding:89@CDAB", "MOD10(4)", 1_234_567n);
  put(holding, 93, registersOf("int64", -140_737_488_355_328n).slice(1));
  has("holding:93", "INT48", -140_737_488_355_328n);
  put(holding, 96, registersOf("uint64", 281_474_976_710_654n).slice(1).reverse());
  has("holding:96@CDAB", "UINT48", 281_474_976_710_654n);
  // 1.5 and -2 as IEEE 754 has them in 16 bits.
  put(holding, 99, [0x3e00, 0xc000]);
  has("holding:99[2]", "FLOAT16", [1.5, -2]);
  // A text of windows-1252.
  put(holding, 101, [0x3520, 0x8000]);
  has("holding:101", "string(4)", "5 €");
  put(holding, 65_535, [77]);
  has("holding:65535", "uint16", 77);

  put(input, 0, registersOf("float32", 21.5));
  has("input:0", "float32", 21.5);
  has("30001", "float32", 21.5);
  put(input, 100, [1, 2, 3, 4]);
  has("input:100[4]", "uint16", [1, 2, 3, 4]);

  put(coil, 0, [1, 0, 1, 1, 0, 0, 0, 0, 1]);
  has("coil:0", "bool", true);
  has("coil:1", "bool", false);
  has("00009", "bool", true);
  has("coil:2[7]", "bool", [true, true, false, false, false, false, true]);
  put(discrete, 19, [1, 0]);
  has("discrete:19", "bool", true);
  has("10021", "bool", false);

  // Enron's numbering: whole numbers from 5001, floating point from 7001.
  put(holding32, 5001, [70_000, 4_000_000_000]);
  has("holding32:5001", "uint32", 70_000);
  has("holding32:5002", "uint32", 4_000_000_000);
  // -2.5 as IEEE 754 has it.
  put(holding32, 7001, [0xc020_0000]);
  has("holding32:7001", "float32", -2.5);
  put(records, 9, [513, 514, ...registersOf("float32", 0.25)]);
  has("file4:9[2]", "uint16", [513, 514]);
  has("file4:11", "float32", 0.25);

  put(second, 0, [4242]);
  has("2/holding:0", "uint16", 4242);

  const units = new Map<number, PlantUnit>([
    [
      1,
      {
        ...{ holding, input, coil, discrete, holding32, files: new Map([[4, records]]) },
        identification: ["Example Works", "PLC-7", "V2.11"],
      },
    ],
    [2, { holding: second }],
  ]);
  return { units, variables };
}

export const startSimulator: StartSimulator = (options) => startFramed(options);

/** Starts the device of `startSimulator` with another framing, over another transport. */
export async function startFramed(options?: Listening & Pick<ModbusPlantOptions, "framing" | "transport">): Promise<Simulator> {
  const { units, variables } = standardPlant();
  const plant = await startModbusPlant({ ...options, units });
  return {
    port: plant.port,
    details: (host, port) => ({ type: "modbus_tcp", host, port, ephemeral_connections: false }),
    variables,
    missing: { address: "holding:500", type: "uint16" },
    malformed: [
      "",
      "holding",
      "holding:",
      "holding:-1",
      "holding:65536",
      "holding:1.16",
      "holding:1[0]",
      "holding:1@ABDC",
      "256/holding:1",
      "register:1",
      "coil:1.0",
      "file:1",
      "file4:10000",
      "holding16:1",
      "coil32:1",
      "40000",
      "50001",
      "465537",
      "4001",
      "holding:1 2",
    ],
    connections: plant.connections,
    close: plant.close,
  } satisfies Simulator;
}
