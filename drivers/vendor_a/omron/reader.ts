import { FaultError } from "../../../src/model/fault.ts";
import type { DataType, Reading, Value } from "../../../src/model/value.ts";
import type { DriverContext } from "../../driver.ts";
import { ReusedReadings, type Slot } from "../../lib/reused-readings.ts";
import { type Reply, STATUS } from "../cip.ts";
import type { Packet } from "../link.ts";
import type { Messenger } from "../messenger.ts";
import { parseValueHead, partRequest } from "./objects.ts";
import { answerRoom, elementsRequest, pathTo, type VariableItem, type VariableRead } from "./plan.ts";
import { variableRefusal } from "./refusals.ts";
import { BOOL, isStructureCode, type Shape, STRING } from "./types.ts";

const reused = new ReusedReadings<VariableRead>();
/** A slot of a variable without a type of its own. */
type TypedSlot = Slot & { type?: DataType };

const LENGTH_BYTES = 2;
/** A text whose size nobody says, in bytes: STRING is declared with 1986 at most. */
const MOST_TEXT_BYTES = 4096;
/** Statuses of a controller that does not give parts of this variable. */
const NO_PARTS: ReadonlySet<number> = new Set([STATUS.pathSegment, STATUS.notSupported, 0x20]);

/** The value in an answer has another type than was looked up. */
class Changed extends Error {}

/** The place of the data in an answer; `end`: behind the last byte. */
interface Data {
  readonly bytes: Buffer;
  readonly at: number;
  readonly end: number;
}

/** Reads variables: one message for each, and several for what no answer has room for. */
export class VariableReader {
  readonly #messenger: Messenger;
  readonly #otherProgram: (what: string) => FaultError | undefined;
  #packets = new WeakMap<VariableRead, Packet>();

  /** `otherProgram`: what a value of another type means; undefined: nothing about the program. */
  constructor(messenger: Messenger, otherProgram: (what: string) => FaultError | undefined) {
    this.#messenger = messenger;
    this.#otherProgram = otherProgram;
  }

  /** Packets of another connection are made again. */
  forget(): void {
    this.#packets = new WeakMap();
  }

  /** Throws FaultError: the controller refuses it; ReasonError as `Messenger.send`. */
  async read(request: VariableRead, ctx: DriverContext): Promise<readonly Reading[]> {
    const { variable: item } = request;
    try {
      if (item.isOneByOne) return readingsOf(request, await this.#oneByOne(request, ctx));
      const isLong = item.bytes > this.#room;
      return (isLong ? undefined : await this.#readAtOnce(request, ctx)) ?? readingsOf(request, await this.#long(item, ctx));
    } catch (error) {
      if (!(error instanceof Changed)) throw error;
      const what = `${item.name} ${error.message}`;
      throw (
        this.#otherProgram(what) ??
        new FaultError("type_mismatch", `${what}; what the controller says of its variables does not fit what it sends`)
      );
    }
  }

  get #room(): number {
    return answerRoom(this.#messenger.messageBytes);
  }

  /** Undefined: an answer has no room for it. */
  #readAtOnce(request: VariableRead, ctx: DriverContext): Promise<readonly Reading[] | undefined> {
    const { variable: item } = request;
    let packet = this.#packets.get(request);
    if (!packet) {
      packet = this.#messenger.packet(item.request, ctx.timeouts.answerMs);
      this.#packets.set(request, packet);
    }
    return this.#messenger.send<readonly Reading[] | undefined>(
      ctx,
      () => item.name,
      packet,
      (reply, done, refuse) => {
        const data = dataIn(reply, item, item.bytes);
        if (data === "too large") done(undefined);
        else if (data instanceof Error) refuse(data);
        else done(readingsOf(request, data));
        return undefined;
      },
    );
  }

  /** Elements of an array of texts or structures. */
  async #oneByOne(request: VariableRead, ctx: DriverContext): Promise<Value> {
    const { variable: item, points, decoders } = request;
    const [decode] = decoders;
    const values: Value[] = [];
    for (let i = 0; i < item.elements; i++) {
      const start = (item.start ?? 0) + i;
      const element: VariableItem = {
        ...item,
        name: `${item.name}, element ${i}`,
        start,
        elements: 1,
        bytes: item.shape.code === STRING ? 0 : item.shape.bytes,
        request: elementsRequest(item, start, 1),
        isOneByOne: false,
      };
      const data = await this.#dataOf(element, ctx);
      const reading = decode?.(data.bytes, data.at, data.end, { quality: "good", value: 0 });
      if (!reading || reading.quality === "bad")
        throw new FaultError(reading?.fault ?? "device_error", `element ${i}: ${reading?.detail ?? "no value"}`);
      // The bytes of all elements, one behind the other.
      if (points[0]?.address.isRaw && Array.isArray(reading.value)) values.push(...reading.value);
      else values.push(reading.value);
    }
    return values as Value;
  }

  async #dataOf(item: VariableItem, ctx: DriverContext): Promise<Data> {
    if (item.bytes > this.#room) return this.#long(item, ctx);
    return (await this.#ask(item, item.request, item.bytes, ctx)) ?? this.#long(item, ctx);
  }

  /** Data that outlive the answer; undefined: it has no room for them. */
  #ask(item: VariableItem, request: Buffer, bytes: number, ctx: DriverContext): Promise<Data | undefined> {
    return this.#messenger.ask<Data | undefined>(
      ctx,
      () => item.name,
      request,
      (reply, done, refuse) => {
        const data = dataIn(reply, item, bytes);
        if (data === "too large") done(undefined);
        else if (data instanceof Error) refuse(data);
        else done({ bytes: Buffer.from(data.bytes.subarray(data.at, data.end)), at: 0, end: data.end - data.at });
        return undefined;
      },
    );
  }

  /** Reads long rows in shorter ones, everything else in parts. They are not of one instant. */
  async #long(item: VariableItem, ctx: DriverContext): Promise<Data> {
    if (item.form === "row") return this.#rows(item, ctx);
    const parts = await this.#parts(item, ctx);
    if (!(parts instanceof FaultError)) return parts;
    // Parts of arrays are known from one client only: elements can be had too.
    if (item.form !== "whole") throw parts;
    const row = await this.#rows({ ...item, start: 0 }, ctx);
    return item.shape.code === BOOL ? wordsOf(row, item.bytes) : row;
  }

  async #rows(item: VariableItem, ctx: DriverContext): Promise<Data> {
    const size = item.shape.code === BOOL ? 1 : item.shape.bytes;
    const data = Buffer.alloc(item.elements * size);
    let most = Math.max(1, Math.floor(this.#room / size));
    for (let done = 0; done < item.elements; ) {
      const count = Math.min(most, item.elements - done);
      const start = (item.start ?? 0) + done;
      // A single element has the form of a value: a BOOL of two bytes, whose first is its state.
      const bytes = count === 1 ? item.shape.bytes : count * size;
      const part = await this.#ask(item, elementsRequest(item, start, count), bytes, ctx);
      if (!part && count === 1) throw new FaultError("device_error", `${item.name}: an answer has no room for an element`);
      if (!part) {
        most = count >> 1;
        continue;
      }
      part.bytes.copy(data, done * size, part.at, part.at + count * size);
      done += count;
    }
    return { bytes: data, at: 0, end: data.length };
  }

  /** By the simple data segment. The controller's refusal of the first part where it gives none. */
  async #parts(item: VariableItem, ctx: DriverContext): Promise<Data | FaultError> {
    const isText = item.shape.code === STRING;
    const total = isText ? item.shape.bytes || MOST_TEXT_BYTES : item.bytes;
    // Whole words, and the length that each part of a text has.
    const most = Math.max(2, (this.#room - LENGTH_BYTES) & ~1);
    const parts: Buffer[] = [];
    for (let from = 0; from < total; ) {
      const asked = Math.min(most, total - from);
      const part = await this.#part(item, from, asked, ctx);
      if (part instanceof FaultError) {
        if (from === 0) return part;
        throw part;
      }
      parts.push(part);
      from += part.length;
      // The end of a text is where a part is shorter, or has a NUL.
      if (isText && (part.length < asked || part.includes(0))) break;
      if (part.length !== asked)
        throw new FaultError(
          "device_error",
          `${item.name}: the controller sent ${part.length} of ${asked} bytes from byte ${from - part.length} on`,
        );
    }
    const data = Buffer.concat(parts);
    return { bytes: data, at: 0, end: data.length };
  }

  #part(item: VariableItem, from: number, asked: number, ctx: DriverContext): Promise<Buffer | FaultError> {
    return this.#messenger.ask<Buffer | FaultError>(
      ctx,
      () => `${item.name} from byte ${from} on`,
      partRequest(pathTo(item, item.start), from, asked),
      (reply, done, refuse) => {
        const data = dataIn(reply, item, asked);
        if (data === "too large")
          refuse(new FaultError("device_error", `${item.name}: the controller has no room for ${asked} bytes in an answer`));
        else if (data instanceof FaultError && NO_PARTS.has(reply.status)) done(data);
        else if (data instanceof Error) refuse(data);
        else if (data.end - data.at > asked)
          refuse(
            new FaultError(
              "device_error",
              `${item.name}: the controller sent ${data.end - data.at} of ${asked} bytes from byte ${from} on`,
            ),
          );
        else done(Buffer.from(data.bytes.subarray(data.at, data.end)));
        return undefined;
      },
    );
  }
}

/** The data in an answer, of which `bytes` were requested; of a text without its length. */
function dataIn(
  { status, extended, bytes, at, end }: Reply,
  { name, shape }: VariableItem,
  asked: number,
): Data | "too large" | FaultError | Changed {
  if (status === STATUS.tooLarge) return "too large";
  if (status !== STATUS.ok) return variableRefusal(status, extended, name);
  const head = parseValueHead(bytes, at, end);
  if (typeof head === "string") return new FaultError("device_error", `${name}: ${head}`);
  const changed = changeOf(head, shape);
  if (changed !== undefined) return new Changed(changed);
  if (shape.code === STRING) return textIn(bytes, head.dataAt, end, name);
  const length = end - head.dataAt;
  if (length === asked || isPadded(length, asked)) return { bytes, at: head.dataAt, end: head.dataAt + Math.min(length, asked) };
  return new Changed(`has ${length} bytes of data instead of ${asked}`);
}

/** A pad byte may fill the last word. */
const isPadded = (length: number, asked: number): boolean => asked % 2 === 1 && length === asked + 1;

function textIn(bytes: Buffer, at: number, end: number, name: string): Data | FaultError {
  if (end - at < LENGTH_BYTES) return new FaultError("device_error", `${name}: a text of ${end - at} bytes`);
  const from = at + LENGTH_BYTES;
  const textEnd = from + bytes.readUInt16LE(at);
  if (textEnd > end) return new FaultError("device_error", `${name}: a text ends ${textEnd - end} bytes behind the answer`);
  return { bytes, at: from, end: textEnd };
}

/** Two codes of one type. */
const isTime = (code: number): boolean => code === 0x09 || code === 0xdb;

/** Undefined: it has the type that was looked up. */
function changeOf(head: { readonly code: number; readonly crc: number | undefined }, { code, structure }: Shape): string | undefined {
  const isSame = head.code === code || (isStructureCode(head.code) && isStructureCode(code)) || (isTime(head.code) && isTime(code));
  if (!isSame) return `has the type 0x${head.code.toString(16)} instead of 0x${code.toString(16)}`;
  if (!structure || head.crc === structure.crc) return undefined;
  return `is a structure with the CRC 0x${head.crc?.toString(16)} instead of 0x${structure.crc.toString(16)}`;
}

/** A byte for each BOOL becomes a bit, as in a whole array. */
function wordsOf(row: Data, bytes: number): Data {
  const words = Buffer.alloc(bytes);
  for (let i = 0; i < row.end - row.at; i++) if (row.bytes[row.at + i] !== 0) words[i >> 3] = (words[i >> 3] ?? 0) | (1 << (i & 7));
  return { bytes: words, at: 0, end: bytes };
}

/** `found`: the data of the item, or its value. */
function readingsOf(request: VariableRead, found: Data | Value): readonly Reading[] {
  const { points, decoders, offsets } = request;
  const { slots, readings } = reused.next(request);
  // Texts reach to the end of what is there.
  const data = isData(found) ? found.bytes.subarray(found.at, found.end) : undefined;
  for (const [i, point] of points.entries()) {
    const slot: TypedSlot | undefined = slots[i];
    const decode = decoders[i];
    if (!slot || !decode) continue;
    if (point.address.variable?.isAuto) slot.type = point.type;
    if (data) readings[i] = decode(data, offsets[i] ?? 0, data.length, slot);
    else {
      slot.value = found as Value;
      readings[i] = slot;
    }
  }
  return readings;
}

const isData = (found: Data | Value): found is Data => typeof found === "object" && "bytes" in found;
