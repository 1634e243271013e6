import { FaultError } from "../../../src/model/fault.ts";
import type { Reading } from "../../../src/model/value.ts";
import { type Warning, warning } from "../../../src/model/warning.ts";
import type { DeviceMemory, DriverContext } from "../../driver.ts";
import { Learned } from "../../lib/learned.ts";
import { ReusedReadings } from "../../lib/reused-readings.ts";
import { MOST_FILE_BYTES } from "../settings.ts";
import type { FileChannel } from "./channel.ts";
import { type FileFamily, type FileKind, isInputOrOutput } from "./files.ts";
import { type FileReply, logicalRead, parseDataType, typedRead, wordRangeRead } from "./frames.ts";
import type { FileItem, FileRead } from "./plan.ts";
import { nameOf } from "./plan.ts";
import { fileRefusal, isCommandRefused, isTypeRefused, mayBeTooLarge } from "./refusals.ts";

const reused = new ReusedReadings<FileRead>();

/** A piece of an item that was refused. */
interface Refused {
  readonly status: number;
  readonly extended: number | undefined;
}

type Piece = Pick<FileItem, "start" | "count">;
const GOOD = 0;
/** The smallest processors answer with more: what is refused is not too large. */
const LEAST_BYTES = 40;

/** Reads elements of data files: what fits one answer as one, a longer value in pieces. */
export class FileReader {
  readonly #channel: FileChannel;
  readonly #learned: Learned<{ readonly bytes: number } & Ways>;

  constructor(channel: FileChannel, memory: DeviceMemory | undefined) {
    this.#channel = channel;
    // Several controllers may be behind one device.
    this.#learned = new Learned(memory, `files, ${channel.words}`, { bytes: MOST_FILE_BYTES, isBySlot: false, isByWords: false });
  }

  /** For people; undefined: all is as it should be. */
  get warning(): Warning | undefined {
    if (!this.#learned.values.isByWords) return undefined;
    return warning(
      "file_types_unproved",
      "the controller knows no typed reads: a wrong letter in an address (F for N) gives a wrong value; compare the letters with the program",
    );
  }

  /** Throws as `FileChannel.ask`, and FaultError where the controller refuses it. */
  async read(request: FileRead, ctx: DriverContext): Promise<readonly Reading[]> {
    await this.#channel.ready(ctx);
    this.#learned.forgetOld();
    const { item } = request;
    const data = Buffer.alloc(item.bytes);
    const { bytes } = item.kind;
    // The agent divides a request of several points; one point is divided here.
    const isLone = request.points.length === 1;
    const before = isLone ? Math.min(item.mostBytes, this.#learned.values.bytes) : item.mostBytes;
    let size = before;
    for (let done = 0; done < item.count; ) {
      const count = Math.min(item.count - done, Math.max(1, Math.floor(size / bytes)));
      const refused = await this.#readPiece(item, { start: item.start + done, count }, data, done * bytes, ctx);
      if (refused === undefined) done += count;
      else if (isLone && count > 1 && count * bytes > LEAST_BYTES && mayBeTooLarge(refused.status, refused.extended))
        size = Math.ceil(count / 2) * bytes;
      else throw fileRefusal(refused.status, refused.extended, item.name);
    }
    if (size < before) this.#learned.learn({ bytes: size });
    return fill(request, data);
  }

  /** Undefined: its bytes are in `data` from `at` on. */
  async #readPiece(item: FileItem, piece: Piece, data: Buffer, at: number, ctx: DriverContext): Promise<Refused | undefined> {
    const refused = await this.#ask(item, piece, data, at, ctx);
    if (!refused) return undefined;
    const { kind, family } = item;
    const isOther = isInputOrOutput(kind.letter) && family !== "plc5" && isTypeRefused(refused.status, refused.extended);
    const { isBySlot, isByWords } = this.#learned.values;
    if (isOther) return (await this.#tryOther({ isByWords, isBySlot: !isBySlot }, item, piece, data, at, ctx)) ? undefined : refused;
    const isUnknown = family === "plc5" && isCommandRefused(refused.status) && !isByWords;
    if (isUnknown) return (await this.#tryOther({ isBySlot, isByWords: true }, item, piece, data, at, ctx)) ? undefined : refused;
    return refused;
  }

  /** Asks in another way, which stays where it is answered. */
  async #tryOther(ways: Ways, item: FileItem, piece: Piece, data: Buffer, at: number, ctx: DriverContext): Promise<boolean> {
    if (await this.#ask(item, piece, data, at, ctx, ways)) return false;
    this.#learned.learn(ways);
    const codes = `inputs and outputs have the codes ${ways.isBySlot ? "8C and 8B" : "83 and 82"}`;
    ctx.log.info({}, isInputOrOutput(item.kind.letter) && item.family !== "plc5" ? codes : "the controller takes word range reads only");
    return true;
  }

  #ask(
    item: FileItem,
    piece: Piece,
    data: Buffer,
    at: number,
    ctx: DriverContext,
    ways: Ways = this.#learned.values,
  ): Promise<Refused | undefined> {
    const { kind } = item;
    const bytes = piece.count * kind.bytes;
    const isTyped = isTypedFamily(item.family) && !ways.isByWords;
    const describe = (): string => nameOf({ ...item, ...piece });
    return this.#channel.ask<Refused | undefined>(ctx, describe, readCommand(item, piece, ways), (reply, done, refuse) => {
      if (reply.status !== GOOD) {
        done({ status: reply.status, extended: reply.extended });
        return undefined;
      }
      const from = isTyped ? typedData(reply, kind, piece.count) : reply.at;
      if (typeof from === "string") return from;
      if (from instanceof FaultError) {
        refuse(new FaultError(from.fault, `${describe()}: ${from.message}`));
        return undefined;
      }
      if (reply.end - from !== bytes) return `${reply.end - from} bytes answer a read of ${bytes}`;
      reply.bytes.copy(data, at, from, reply.end);
      done(undefined);
      return undefined;
    });
  }
}

/** The ways of asking that a controller may not know. */
export interface Ways {
  /** Inputs and outputs have the codes "by slot". */
  readonly isBySlot: boolean;
  /** Word range reads in the place of typed reads. */
  readonly isByWords: boolean;
}

/** The command that reads a piece of an item. Pure. */
export function readCommand(
  { family, kind, file, slot }: Pick<FileItem, "family" | "kind" | "file" | "slot">,
  { start, count }: Piece,
  { isBySlot, isByWords }: Ways,
): Buffer {
  const bytes = count * kind.bytes;
  if (isTypedFamily(family)) return isByWords ? wordRangeRead({ file, element: start, bytes }) : typedRead({ file, element: start, count });
  const code = isBySlot && kind.otherCode !== undefined ? kind.otherCode : kind.code;
  return logicalRead({ bytes, file, code, element: slot ?? start, sub: slot === undefined ? 0 : start });
}

const isTypedFamily = (family: FileFamily): boolean => family === "plc5" || family === "logix";

/** Place of the data of a typed read; a fault: it is a file of another letter; a string: what about it breaks the protocol. */
function typedData({ bytes, at, end }: FileReply, { letter, typeIds, bytes: size }: FileKind, count: number): number | FaultError | string {
  const type = parseDataType(bytes, at, end);
  if (typeof type === "string") return type;
  if (!typeIds.includes(type.id) || type.bytes !== size) {
    const words = `the file holds type ${type.id} in elements of ${type.bytes} bytes, and an ${letter} file has type ${typeIds.join(" or ")} in ${size}`;
    return new FaultError("type_mismatch", `${words}: correct the letter of the address`);
  }
  return type.end - type.at === count * size ? type.at : `${type.end - type.at} bytes answer a typed read of ${count * size}`;
}

function fill(request: FileRead, data: Buffer): readonly Reading[] {
  const { slots, readings } = reused.next(request);
  for (const [i, decode] of request.decoders.entries()) {
    const slot = slots[i];
    if (slot) readings[i] = decode(data, request.offsets[i] ?? 0, slot);
  }
  return readings;
}
