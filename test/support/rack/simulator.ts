import dgram from "node:dgram";
import type { Simulator, StartSimulator } from "../../../drivers/simulator.ts";
import type { Value } from "../../../src/model/value.ts";

/*
 * The rack protocol: made up for the tests, so that one small device has everything that the contract of drivers knows.
 *
 * One datagram is one request or one answer; all numbers are big-endian.
 *
 *   header   magic 0x524B (2)  kind (1)  status (1)  id (2)  length of the body (2)
 *
 * An answer has the id of its request and its kind + 0x80; in a request the status is 0. What is no whole request has no answer. A device
 * answers a request that comes twice twice: nothing but the id tells what an answer belongs to.
 *
 *   status   0 done   1 busy   2 locked: nothing but a greeting is answered, by a key switch
 *            3 another program: the body is the number of the program that runs (4)
 *            4 too many items: the body is how many it takes (1)
 *   A status other than 0 refuses the whole request.
 *
 *   kind 1   greeting: protocol version, 1 (1)
 *            answer: items in a request (1)  bytes in the body of an answer to kind 3 (2)  requests under way (1)  names in a
 *            request (1)  number of the program (4)  name of the device, its length first (1 + n)
 *   kind 2   where symbols are: program (4)  count (1)  each name, its length first (1 + n)
 *            answer: count (1), each: 0 or 1, unknown (1)  block (2)  offset (2)  type (1)  words of an element (2)  elements (2)
 *   kind 3   read: program (4)  count (1), each: block (2)  offset (2)  words (2)
 *            answer: count (1), each: code (1)  words (2)  the words; with a code other than 0 there are none
 *            code 1: no such block   2: a word of it is not there   3: a word of it is protected
 *   kind 4   symbols from a number on: from (2)
 *            answer: all there are (2)  next number, 0 at the end (2)  count (1), each: name (1 + n)  type (1)  words (2)
 *            elements (2)  unit (1 + n)
 *   kind 16  write: block (2)  offset (2)  word (2). A collector never sends it.
 *
 *   type     1 BOOL  2 INT  3 WORD  4 DINT  5 REAL  6 STRING (UTF-8, filled with NUL)  7 BCD (four digits)
 *            8 S5TIME (bits 12 and 13: 10 ms, 100 ms, 1 s or 10 s; three BCD digits)
 *
 * References (block and offset) hold in one program: a download moves everything and changes the program's number.
 */

type Type = "BOOL" | "INT" | "WORD" | "DINT" | "REAL" | "STRING" | "BCD" | "S5TIME";
const CODES: Readonly<Record<Type, number>> = { BOOL: 1, INT: 2, WORD: 3, DINT: 4, REAL: 5, STRING: 6, BCD: 7, S5TIME: 8 };

/** A symbol of the program, and what it holds. */
export interface RackSymbol {
  readonly name: string;
  readonly type: Type;
  /** Words of one element. */
  readonly words: number;
  /** One per element. */
  readonly elements: readonly (readonly number[])[];
  readonly unit?: string;
  /** Words behind it that no symbol has. */
  readonly gap?: number;
}

export interface RackOptions {
  readonly port?: number;
  readonly host?: string;
  readonly symbols?: readonly RackSymbol[];
  /** Default: 8. */
  readonly maxItems?: number;
  /** What it takes in truth. Default: `maxItems`. */
  readonly takesItems?: number;
  /** Default: 200. */
  readonly maxBytes?: number;
  /** Default: 4. */
  readonly inFlight?: number;
  /** Default: 6. */
  readonly namesPerPage?: number;
  /** Symbols in one block. Default: 12. */
  readonly symbolsPerBlock?: number;
}

/** A request that came, as the device understood it. */
export interface RackRequest {
  readonly kind: "greeting" | "names" | "read" | "list" | "write";
  readonly id: number;
  /** Names or items. */
  readonly count: number;
}

/** A rack whose state can be changed while it runs. */
export interface Rack extends Simulator {
  /** Before each answer to names. */
  namesDelayMs: number;
  isLocked: boolean;
  isBusy: boolean;
  isSilent: boolean;
  /** Symbols of which words are not there, although the program has them. */
  readonly broken: Set<string>;
  /** Symbols of which words are protected. */
  readonly protectedSymbols: Set<string>;
  /** Symbols that the program does not have (any longer). */
  readonly unknown: Set<string>;
  /** The word right before these symbols is not there. */
  readonly holesBefore: Set<string>;
  /** Names on which it gives no answer. */
  readonly mute: Set<string>;
  /** In order; at most the last 100,000. */
  readonly requests: readonly RackRequest[];
  readonly program: number;
  /** Loads the program with this number (default: the next one): every symbol is somewhere else. */
  download(program?: number): void;
  /** What a symbol holds from now on. */
  put(name: string, elements: readonly (readonly number[])[]): void;
}

const HEADER = 8;
const MAGIC = 0x524b;
const KEPT_REQUESTS = 100_000;

const word16 = (value: number): readonly number[] => [value & 0xffff];
const words32 = (write: (bytes: Buffer) => void): readonly number[] => {
  const bytes = Buffer.alloc(4);
  write(bytes);
  return [bytes.readUInt16BE(0), bytes.readUInt16BE(2)];
};

/** Words of values, to make symbols of. */
export const encode = {
  BOOL: (value: boolean) => word16(value ? 1 : 0),
  INT: word16,
  WORD: word16,
  DINT: (value: number) => words32((bytes) => bytes.writeInt32BE(value)),
  REAL: (value: number) => words32((bytes) => bytes.writeFloatBE(value)),
  STRING: (value: string, words: number): readonly number[] => {
    const bytes = Buffer.alloc(words * 2);
    bytes.write(value);
    return Array.from({ length: words }, (_, i) => bytes.readUInt16BE(i * 2));
  },
  BCD: (value: number) => [Number.parseInt(String(value), 16)],
  /** `base`: 0 to 3, 10 ms times ten to the power of it. */
  S5TIME: (digits: number, base: number) => [(base << 12) | Number.parseInt(String(digits), 16)],
} as const;

interface Located {
  readonly symbol: RackSymbol;
  readonly block: number;
  readonly offset: number;
}

const sizeOf = ({ words, elements, gap = 0 }: RackSymbol) => words * elements.length + gap;

/** Places of all symbols in a program: the blocks and the order in them depend on its number. */
function layOut(symbols: readonly RackSymbol[], perBlock: number, program: number): ReadonlyMap<string, Located> {
  const located = new Map<string, Located>();
  for (let at = 0; at < symbols.length; at += perBlock) {
    let offset = (program * 7) % 50;
    for (const symbol of symbols.slice(at, at + perBlock)) {
      located.set(symbol.name, { symbol, block: 1 + (program % 100) * 100 + at / perBlock, offset });
      offset += sizeOf(symbol);
    }
  }
  return located;
}

/** A device as it runs; the datagrams are `startRack`'s. */
class Device {
  readonly options: Required<Omit<RackOptions, "port" | "host">>;
  readonly held: Map<string, readonly (readonly number[])[]>;
  readonly broken = new Set<string>();
  readonly protectedSymbols = new Set<string>();
  readonly unknown = new Set<string>();
  readonly holesBefore = new Set<string>();
  readonly mute = new Set<string>();
  readonly requests: RackRequest[] = [];
  isLocked = false;
  isBusy = false;
  isSilent = false;
  namesDelayMs = 0;
  program = 1;
  #places: ReadonlyMap<string, Located>;
  readonly #names: readonly string[];

  constructor(options: RackOptions) {
    const { symbols = SYMBOLS, maxItems = 8, maxBytes = 200, inFlight = 4, namesPerPage = 6, symbolsPerBlock = 12 } = options;
    this.options = { symbols, maxItems, takesItems: options.takesItems ?? maxItems, maxBytes, inFlight, namesPerPage, symbolsPerBlock };
    this.held = new Map(symbols.map(({ name, elements }) => [name, elements]));
    this.#names = symbols.map(({ name }) => name);
    this.#places = layOut(symbols, symbolsPerBlock, this.program);
  }

  download(program: number): void {
    this.program = program;
    this.#places = layOut(this.options.symbols, this.options.symbolsPerBlock, program);
  }

  /** The answer to a datagram; undefined: there is none. */
  answer(datagram: Buffer): Buffer | undefined {
    if (datagram.length < HEADER || datagram.readUInt16BE(0) !== MAGIC || datagram.readUInt16BE(6) !== datagram.length - HEADER)
      return undefined;
    const [kind, id, body] = [datagram[2] ?? 0, datagram.readUInt16BE(4), datagram.subarray(HEADER)];
    try {
      const refused = this.#refusalOf(kind, body);
      const [status, content] = refused ?? [0, this.#contentOf(kind, id, body)];
      if (refused) this.#note(kind, id, 0);
      if (!content || this.isSilent) return undefined;
      const head = Buffer.alloc(HEADER);
      head.writeUInt16BE(MAGIC, 0);
      head[2] = kind | 0x80;
      head[3] = status;
      head.writeUInt16BE(id, 4);
      head.writeUInt16BE(content.length, 6);
      return Buffer.concat([head, content]);
    } catch (error) {
      // Half a request has no answer.
      if (error instanceof RangeError) return undefined;
      throw error;
    }
  }

  #note(kind: number, id: number, count: number): void {
    const words = ({ 1: "greeting", 2: "names", 3: "read", 4: "list", 16: "write" } as const)[kind];
    if (words) this.requests.push({ kind: words, id, count });
    if (this.requests.length > KEPT_REQUESTS) this.requests.shift();
  }

  #refusalOf(kind: number, body: Buffer): readonly [number, Buffer] | undefined {
    if (kind === 1) return undefined;
    if (this.isBusy) return [1, Buffer.alloc(0)];
    if (this.isLocked) return [2, Buffer.alloc(0)];
    if ((kind === 2 || kind === 3) && body.readUInt32BE(0) !== this.program) {
      const number = Buffer.alloc(4);
      number.writeUInt32BE(this.program);
      return [3, number];
    }
    const count = kind === 3 ? (body[4] ?? 0) : 0;
    return count > this.options.takesItems ? [4, Buffer.of(this.options.takesItems)] : undefined;
  }

  #contentOf(kind: number, id: number, body: Buffer): Buffer | undefined {
    switch (kind) {
      case 1:
        this.#note(kind, id, 1);
        return this.#greeting();
      case 2:
        return this.#namesOf(id, body);
      case 3:
        return this.#itemsOf(id, body);
      case 4:
        this.#note(kind, id, 1);
        return this.#list(body.readUInt16BE(0));
      case 16:
        this.#note(kind, id, 1);
        return Buffer.alloc(0);
      default:
        return undefined;
    }
  }

  #greeting(): Buffer {
    const { maxItems, maxBytes, inFlight, namesPerPage } = this.options;
    const head = Buffer.alloc(9);
    head[0] = maxItems;
    head.writeUInt16BE(maxBytes, 1);
    head[3] = inFlight;
    head[4] = namesPerPage;
    head.writeUInt32BE(this.program, 5);
    return Buffer.concat([head, lengthFirst("rack 7")]);
  }

  #namesOf(id: number, body: Buffer): Buffer | undefined {
    const count = body.readUInt8(4);
    const names: string[] = [];
    for (let at = 5; names.length < count; at += 1 + body.readUInt8(at)) {
      const end = at + 1 + body.readUInt8(at);
      if (end > body.length) throw new RangeError("half a name");
      names.push(body.toString("utf8", at + 1, end));
    }
    this.#note(2, id, count);
    if (names.some((name) => this.mute.has(name))) return undefined;
    const found = names.map((name) => {
      const entry = Buffer.alloc(10);
      const place = this.unknown.has(name) ? undefined : this.#places.get(name);
      if (!place) {
        entry[0] = 1;
        return entry;
      }
      entry.writeUInt16BE(place.block, 1);
      entry.writeUInt16BE(place.offset, 3);
      entry[5] = CODES[place.symbol.type];
      entry.writeUInt16BE(place.symbol.words, 6);
      entry.writeUInt16BE(place.symbol.elements.length, 8);
      return entry;
    });
    return Buffer.concat([Buffer.of(count), ...found]);
  }

  #itemsOf(id: number, body: Buffer): Buffer {
    const count = body.readUInt8(4);
    const memory = this.#memory();
    const answers: Buffer[] = [Buffer.of(count)];
    for (let at = 5, left = count; left > 0; at += 6, left--)
      answers.push(itemOf(memory.get(body.readUInt16BE(at)), body.readUInt16BE(at + 2), body.readUInt16BE(at + 4)));
    this.#note(3, id, count);
    return Buffer.concat(answers);
  }

  /** By block: the words that are there; a text says that a word is protected. */
  #memory(): ReadonlyMap<number, Map<number, number | "protected">> {
    const blocks = new Map<number, Map<number, number | "protected">>();
    for (const { symbol, block, offset } of this.#places.values()) {
      const words = blocks.get(block) ?? new Map<number, number | "protected">();
      blocks.set(block, words);
      const held = (this.held.get(symbol.name) ?? []).flat();
      for (let i = 0; i < sizeOf(symbol); i++) {
        if (this.broken.has(symbol.name) && i < held.length) continue;
        words.set(offset + i, this.protectedSymbols.has(symbol.name) && i < held.length ? "protected" : (held[i] ?? 0));
      }
    }
    for (const name of this.holesBefore) {
      const place = this.#places.get(name);
      if (place) blocks.get(place.block)?.delete(place.offset - 1);
    }
    return blocks;
  }

  #list(from: number): Buffer {
    const { symbols, namesPerPage } = this.options;
    const page = symbols.slice(from, from + namesPerPage);
    const next = from + page.length;
    const head = Buffer.alloc(5);
    head.writeUInt16BE(symbols.length, 0);
    head.writeUInt16BE(next < symbols.length ? next : 0, 2);
    head[4] = page.length;
    const entries = page.map(({ name, type, words, elements, unit = "" }) => {
      const shape = Buffer.alloc(5);
      shape[0] = CODES[type];
      shape.writeUInt16BE(words, 1);
      shape.writeUInt16BE(elements.length, 3);
      return Buffer.concat([lengthFirst(name), shape, lengthFirst(unit)]);
    });
    return Buffer.concat([head, ...entries]);
  }

  has(name: string): boolean {
    return this.#names.includes(name);
  }
}

const lengthFirst = (text: string): Buffer => Buffer.concat([Buffer.of(Buffer.byteLength(text)), Buffer.from(text)]);

function itemOf(block: ReadonlyMap<number, number | "protected"> | undefined, offset: number, count: number): Buffer {
  if (!block) return Buffer.of(1, 0, 0);
  const answer = Buffer.alloc(3 + count * 2);
  answer.writeUInt16BE(count, 1);
  for (let i = 0; i < count; i++) {
    const word = block.get(offset + i);
    if (word === undefined) return Buffer.of(2, 0, 0);
    if (word === "protected") return Buffer.of(3, 0, 0);
    answer.writeUInt16BE(word, 3 + i * 2);
  }
  return answer;
}

/** A value of every type, with gaps between some. */
const SYMBOLS: readonly RackSymbol[] = [
  { name: "Motor.on", type: "BOOL", words: 1, elements: [encode.BOOL(true)] },
  { name: "Motor.speed", type: "INT", words: 1, elements: [-7, 1500, 32_000, 4].map(encode.INT), unit: "1/min", gap: 2 },
  { name: "Motor.status", type: "WORD", words: 1, elements: [encode.WORD(0xabcd)] },
  { name: "Motor.position", type: "DINT", words: 2, elements: [encode.DINT(-2_000_000_000)] },
  { name: "Oven.temperature", type: "REAL", words: 2, elements: [encode.REAL(21.5)], unit: "°C", gap: 20 },
  { name: "Oven.zones", type: "REAL", words: 2, elements: [0.5, -1, 4096].map(encode.REAL) },
  { name: "Order.name", type: "STRING", words: 10, elements: [encode.STRING("Mühle 1", 10)] },
  { name: "Order.parts", type: "BCD", words: 1, elements: [1234, 9999].map(encode.BCD) },
  { name: "Timer.press", type: "S5TIME", words: 1, elements: [encode.S5TIME(123, 1)] },
  { name: "Timer.raw", type: "WORD", words: 1, elements: [encode.S5TIME(999, 3)], gap: 1 },
  { name: "Counter.raw", type: "WORD", words: 1, elements: [42, 43].map(encode.BCD) },
  { name: "Line.state", type: "INT", words: 1, elements: [encode.INT(3)] },
  { name: "Line.label", type: "STRING", words: 4, elements: [encode.STRING("A", 4), encode.STRING("B", 4)] },
  { name: "Line.limits", type: "INT", words: 1, elements: [1, 2, 3, 4, 5].map(encode.INT), gap: 3 },
  { name: "Line.mode", type: "WORD", words: 1, elements: [encode.WORD(65_535)] },
];

const VARIABLES: readonly { readonly address: string; readonly type: string; readonly value: Value }[] = [
  { address: "Motor.on", type: "bool", value: true },
  { address: "Motor.speed[0]", type: "int16", value: -7 },
  { address: "Motor.speed[3]", type: "INT", value: 4 },
  { address: "Motor.speed", type: "int16[4]", value: [-7, 1500, 32_000, 4] },
  { address: "Motor.speed[1]", type: "int16[2]", value: [1500, 32_000] },
  { address: "Motor.status", type: "WORD", value: 0xabcd },
  { address: "Motor.position", type: "int32", value: -2_000_000_000 },
  { address: "Oven.temperature", type: "REAL", value: 21.5 },
  { address: "Oven.zones", type: "float32[3]", value: [0.5, -1, 4096] },
  { address: "Order.name", type: "string", value: "Mühle 1" },
  { address: "Order.parts", type: "BCD[2]", value: [1234, 9999] },
  { address: "Order.parts[1]", type: "uint16", value: 9999 },
  { address: "Timer.press", type: "S5TIME", value: 12_300 },
  { address: "Timer.raw", type: "S5TIME", value: 9_990_000 },
  { address: "Counter.raw", type: "BCD[2]", value: [42, 43] },
  { address: "Counter.raw[0]", type: "BCD", value: 42 },
  { address: "Line.state", type: "int16", value: 3 },
  { address: "Line.label[1]", type: "string(8)", value: "B" },
  { address: "Line.limits[4]", type: "int16", value: 5 },
  { address: "Line.mode", type: "uint16", value: 65_535 },
];

const MALFORMED = ["", " ", "Motor.", ".speed", "Motor..speed", "3rd", "Motor.speed[", "Motor.speed[-1]", "Motor.speed[x]", "Motor speed"];

/** A rack on a UDP port of 127.0.0.1. */
export async function startRack(options: RackOptions = {}): Promise<Rack> {
  const device = new Device(options);
  const socket = dgram.createSocket("udp4");
  const timers = new Set<NodeJS.Timeout>();
  socket.on("error", () => {});
  socket.on("message", (datagram, { port, address }) => {
    const answer = device.answer(datagram);
    if (!answer) return;
    const delayMs = datagram[2] === 2 ? device.namesDelayMs : 0;
    if (delayMs === 0) {
      socket.send(answer, port, address);
      return;
    }
    const timer = setTimeout(() => {
      timers.delete(timer);
      socket.send(answer, port, address);
    }, delayMs);
    timers.add(timer);
  });
  await new Promise<void>((ready) => socket.bind(options.port ?? 0, options.host ?? "127.0.0.1", ready));
  const { port } = socket.address();
  const { broken, protectedSymbols, unknown, holesBefore, mute, requests } = device;
  return {
    port,
    details: (host, port) => ({ type: "rack", host, port }),
    variables: VARIABLES,
    missing: { address: "Motor.nothing", type: "int16" },
    malformed: MALFORMED,
    connections: () => 0,
    close: () =>
      new Promise((done) => {
        for (const timer of timers) clearTimeout(timer);
        socket.close(() => done());
      }),
    broken,
    protectedSymbols,
    unknown,
    holesBefore,
    mute,
    requests,
    get program() {
      return device.program;
    },
    get namesDelayMs() {
      return device.namesDelayMs;
    },
    set namesDelayMs(ms) {
      device.namesDelayMs = ms;
    },
    get isLocked() {
      return device.isLocked;
    },
    set isLocked(is) {
      device.isLocked = is;
    },
    get isBusy() {
      return device.isBusy;
    },
    set isBusy(is) {
      device.isBusy = is;
    },
    get isSilent() {
      return device.isSilent;
    },
    set isSilent(is) {
      device.isSilent = is;
    },
    download: (program = device.program + 1) => device.download(program),
    put(name, elements) {
      if (!device.has(name)) throw new Error(`the rack has no symbol ${name}`);
      device.held.set(name, elements);
    },
  };
}

export const startSimulator: StartSimulator = (options) => startRack(options);
