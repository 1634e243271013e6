/*
 * The PCCC end of a controller: Execute PCCC (service 4B of class 67), and the same commands as they come over DH+ (Rockwell 1770-6.5.16,
 * chapters 7, 8 and 13; 1770-KF2, 5-57). Shares no code with the driver.
 */

import { type DataFile, type DataFiles, type FileLetter, typeOfFile } from "./simulator-files.ts";
import type { CipReply, CipRequest, CipStatus } from "./simulator-frames.ts";
import { type Identity, identityBytes } from "./simulator-identity.ts";

/** STS, and EXT STS with F0. */
export interface FileStatus {
  readonly sts: number;
  readonly ext?: number;
}

/** A command that came. */
export interface FileCommand {
  readonly cmd: number;
  readonly fnc: number;
  readonly data: Buffer;
}

export const FILE_STATUS = {
  command: { sts: 0x10 },
  address: { sts: 0x50 },
  noAddress: { sts: 0xf0, ext: 0x06 },
  size: { sts: 0xf0, ext: 0x07 },
  tooLarge: { sts: 0xf0, ext: 0x09 },
  tooFar: { sts: 0xf0, ext: 0x0a },
  denied: { sts: 0xf0, ext: 0x0b },
  notAllowed: { sts: 0x60 },
  wrongType: { sts: 0xf0, ext: 0x11 },
  busy: { sts: 0xf0, ext: 0x1f },
  noNode: { sts: 0x02 },
} as const satisfies Record<string, FileStatus>;

export interface FileCpuOptions {
  readonly files: DataFiles;
  readonly identity: Identity;
  /** Text in the place of the bulletin number of diagnostic status. */
  readonly bulletin?: string;
  /** SLC and MicroLogix, or PLC-5 (and Logix with mapped files). */
  readonly takes?: "logical" | "typed" | "both";
}

const CLASS_PCCC = 0x67;
const [EXECUTE, ATTRIBUTES_ALL, IDENTITY] = [0x4b, 0x01, 0x01];
const NOT_SUPPORTED: CipStatus = { general: 0x08 };
const NO_OBJECT: CipStatus = { general: 0x05 };
/** Functions of command 0F that write, change the mode or move programs. */
const READS: ReadonlySet<number> = new Set([0x01, 0x68, 0xa1, 0xa2]);

const INPUTS_AND_OUTPUTS: ReadonlySet<number> = new Set([0x82, 0x83, 0x8b, 0x8c]);

/** A controller with data files. Every public field is its state and may be set while it runs. */
export class FileCpu {
  readonly files: DataFiles;
  readonly identity: Identity;
  bulletin: string;
  takes: "logical" | "typed" | "both";
  /** Data bytes of one answer; with more it refuses. */
  maxBytes = 236;
  /** How more is refused. */
  tooLarge: FileStatus = FILE_STATUS.tooLarge;
  /** Inputs and outputs have the codes 8C and 8B, and not 83 and 82. */
  isBySlot = false;
  /** It has no PCCC object. */
  hasObject = true;
  /** It knows no typed reads. */
  hasTyped = true;
  /** The directory, file 0, and its type. */
  directory: { readonly type: number; readonly bytes: Buffer } | undefined;
  /** Every command is refused with this. */
  refusesAll: FileStatus | undefined;
  /** Looked at before each command. */
  refuse: ((command: FileCommand) => FileStatus | undefined) | undefined;
  /** Changes a whole reply, STS and TNS among it. */
  change: ((reply: Buffer) => Buffer) | undefined;
  onViolation: (words: string) => void = () => {};
  readonly counts = { commands: 0, reads: 0, bytes: 0, refused: 0 };
  readonly lastCommands: FileCommand[] = [];

  constructor({ files, identity, bulletin = identity.name, takes = "logical" }: FileCpuOptions) {
    this.files = files;
    this.identity = identity;
    this.bulletin = bulletin;
    this.takes = takes;
  }

  /** A request to its objects. */
  execute(request: CipRequest): CipReply {
    const [first] = request.path;
    const classCode = first?.kind === "class" ? first.value : undefined;
    if (request.service === ATTRIBUTES_ALL && classCode === IDENTITY) return { general: 0, data: identityBytes(this.identity) };
    if (classCode !== CLASS_PCCC) return request.service === EXECUTE ? NO_OBJECT : NOT_SUPPORTED;
    return this.executeCommand(request);
  }

  /** Execute PCCC. */
  executeCommand({ service, data }: CipRequest): CipReply {
    if (!this.hasObject || service !== EXECUTE) return NOT_SUPPORTED;
    const idBytes = data[0] ?? 0;
    if (idBytes < 1 || idBytes > data.length) return { general: 0x13 };
    return { general: 0, data: Buffer.concat([data.subarray(0, idBytes), this.command(data.subarray(idBytes))]) };
  }

  /** A command, and the reply to it. */
  command(bytes: Buffer): Buffer {
    const [cmd = 0, , low = 0, high = 0, fnc = 0] = bytes;
    const answer = (status: FileStatus, data: Buffer = Buffer.alloc(0)): Buffer => {
      if (status.sts !== 0) this.counts.refused++;
      const tail = status.ext === undefined ? data : Buffer.of(status.ext);
      const reply = Buffer.concat([Buffer.of(cmd | 0x40, status.sts, low, high), tail]);
      return this.change?.(reply) ?? reply;
    };
    const command = { cmd, fnc, data: bytes.subarray(5) };
    this.counts.commands++;
    this.lastCommands.push(command);
    if (this.lastCommands.length > 1000) this.lastCommands.shift();
    const refused = this.refusesAll ?? this.refuse?.(command);
    if (refused) return answer(refused);
    const found = this.#run(command);
    return Buffer.isBuffer(found) ? answer({ sts: 0 }, found) : answer(found);
  }

  #run({ cmd, fnc, data }: FileCommand): Buffer | FileStatus {
    if (cmd === 0x06 && fnc === 0x03) return this.#status();
    if (cmd !== 0x0f || !READS.has(fnc)) {
      this.onViolation(`command ${cmd.toString(16)}, function ${fnc.toString(16)}, which does not read`);
      return FILE_STATUS.command;
    }
    const isTyped = fnc === 0x68 || fnc === 0x01;
    if ((isTyped && this.takes === "logical") || (!isTyped && this.takes === "typed") || (fnc === 0x68 && !this.hasTyped))
      return FILE_STATUS.command;
    this.counts.reads++;
    if (fnc === 0xa1) return this.#readDirectory(data);
    const found = fnc === 0xa2 ? this.#logical(data) : fnc === 0x68 ? this.#typed(data) : this.#words(data);
    if (Buffer.isBuffer(found)) this.counts.bytes += found.length;
    return found;
  }

  /** Mode, type, interface, processor, series, and the bulletin number as text. */
  #status(): Buffer {
    const isPlc5 = this.files.isPlc5;
    const head = Buffer.of(0x06, isPlc5 ? 0xeb : 0xee, 0x34, 0x49, 0x21);
    return Buffer.concat([
      head,
      Buffer.from(isPlc5 ? "\0".repeat(11) : this.bulletin.slice(0, 11).padEnd(11, " "), "latin1"),
      Buffer.alloc(8),
    ]);
  }

  /** Byte count, file, type, element, sub-element. */
  #logical(data: Buffer): Buffer | FileStatus {
    const fields = new Fields(data);
    const [bytes, number, type, element, sub] = [fields.byte(), fields.number(), fields.byte(), fields.number(), fields.number()];
    if (!fields.isWhole) return FILE_STATUS.command;
    if (bytes > this.maxBytes) return this.tooLarge;
    if (INPUTS_AND_OUTPUTS.has(type) && type !== this.#codeOf("I") && type !== this.#codeOf("O")) return FILE_STATUS.wrongType;
    if (type === this.#codeOf("I") || type === this.#codeOf("O")) {
      const slot = this.files.slots.get(`${type === this.#codeOf("I") ? "I" : "O"}${element}`);
      return slot ? part(slot, sub * 2, bytes) : FILE_STATUS.noAddress;
    }
    const file = this.files.files.get(number);
    if (!file) return FILE_STATUS.noAddress;
    const { slc, bytes: size } = typeOfFile(file.letter);
    return slc === type ? part(file.data, element * size + sub * 2, bytes) : FILE_STATUS.wrongType;
  }

  #codeOf(letter: "I" | "O"): number {
    const { slc, slot } = typeOfFile(letter);
    return this.isBySlot && slot !== undefined ? slot : slc;
  }

  /** Offset, elements in all, address, elements. */
  #typed(data: Buffer): Buffer | FileStatus {
    const found = this.#addressed(data, 2);
    if (!("file" in found)) return found;
    const { file, element, tail } = found;
    const count = tail.readUInt16LE(0);
    const { plc5, bytes: size } = typeOfFile(file.letter);
    const values = part(file.data, element * size, count * size);
    if (!Buffer.isBuffer(values)) return values;
    const one = parameter(plc5, size);
    const answer = count === 1 ? Buffer.concat([one, values]) : Buffer.concat([parameter(9, one.length + values.length), one, values]);
    return answer.length > this.maxBytes ? this.tooLarge : answer;
  }

  /** Offset, words in all, address, bytes. */
  #words(data: Buffer): Buffer | FileStatus {
    const found = this.#addressed(data, 1);
    if (!("file" in found)) return found;
    const [bytes = 0] = found.tail;
    if (bytes !== data.readUInt16LE(2) * 2) return FILE_STATUS.command;
    return bytes > this.maxBytes ? this.tooLarge : part(found.file.data, found.element * typeOfFile(found.file.letter).bytes, bytes);
  }

  #addressed(data: Buffer, tailBytes: number): { readonly file: DataFile; readonly element: number; readonly tail: Buffer } | FileStatus {
    const fields = new Fields(data.subarray(4));
    const mask = fields.byte();
    const levels = [0, 1, 0, 0].map((usual, level) => (mask & (1 << level) ? fields.number() : usual));
    const tail = fields.rest;
    if (!fields.isLeft(tailBytes) || tail.length !== tailBytes) return FILE_STATUS.command;
    const file = this.files.files.get(levels[1] ?? 1);
    return file ? { file, element: levels[2] ?? 0, tail } : FILE_STATUS.noAddress;
  }

  /** Byte count, file 0, type, offset in words. */
  #readDirectory(data: Buffer): Buffer | FileStatus {
    const fields = new Fields(data);
    const [bytes, number, type, offset] = [fields.byte(), fields.number(), fields.byte(), fields.number()];
    if (!fields.isWhole || number !== 0) return FILE_STATUS.command;
    if (!this.directory || type !== this.directory.type) return FILE_STATUS.noAddress;
    const rest = this.directory.bytes.subarray(offset * 2);
    return rest.length === 0 ? FILE_STATUS.tooFar : rest.subarray(0, bytes);
  }
}

/** A part of a file that must be in it as a whole. */
const part = (data: Buffer, at: number, bytes: number): Buffer | FileStatus => {
  if (at >= data.length) return FILE_STATUS.noAddress;
  return at + bytes > data.length ? FILE_STATUS.size : data.subarray(at, at + bytes);
};

/** Type and size: in the flag byte up to 7, else behind it in as many bytes as they need. */
function parameter(id: number, size: number): Buffer {
  const field = (value: number): readonly number[] => (value < 8 ? [] : value < 0x100 ? [value] : [value & 0xff, value >> 8]);
  const nibble = (value: number): number => (value < 8 ? value : 8 + field(value).length);
  return Buffer.of((nibble(id) << 4) | nibble(size), ...field(id), ...field(size));
}

/** Fields of a command, one behind the other. */
class Fields {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  byte(): number {
    return this.#bytes[this.#at++] ?? 0;
  }

  /** One byte, or FF and two. */
  number(): number {
    const first = this.byte();
    return first === 0xff ? this.byte() | (this.byte() << 8) : first;
  }

  get rest(): Buffer {
    return this.#bytes.subarray(this.#at);
  }

  isLeft(bytes: number): boolean {
    return this.#at + bytes <= this.#bytes.length;
  }

  get isWhole(): boolean {
    return this.#at === this.#bytes.length;
  }
}

/** The directory of an SLC 5/05 (type 1), MicroLogix 1100 (2) or 1400 (3): rows of ten bytes, from a place that depends on the model. */
export function directoryOf(files: DataFiles, type: 1 | 2 | 3): { readonly type: number; readonly bytes: Buffer } {
  const rowsAt = type === 1 ? 79 : 233;
  const last = Math.max(...files.files.keys());
  const bytes = Buffer.alloc(rowsAt + (last + 1) * 10);
  for (let number = 0; number <= last; number++) {
    const file = files.files.get(number);
    const letter: FileLetter | undefined = file?.letter ?? (number === 0 ? "O" : number === 1 ? "I" : undefined);
    bytes[rowsAt + number * 10] = letter ? typeOfFile(letter).slc : 0x81;
    bytes.writeUInt16LE(file?.data.length ?? 0, rowsAt + number * 10 + 1);
  }
  return { type, bytes };
}
