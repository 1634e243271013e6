import type { Simulator, StartSimulator } from "../simulator.ts";
import { type CipDevice, startCipDevice } from "./simulator-device.ts";
import { type CipReply, type CipRequest, type CipStatus, doubleWord, replyBytes, type Segment, word } from "./simulator-frames.ts";
import { type Identity, identityBytes } from "./simulator-identity.ts";
import { NJ_MALFORMED, NJ_VARIABLES, njProgram } from "./simulator-plant.ts";
import {
  CODES,
  elementCount,
  elementOf,
  type OmronProgram,
  sizeOf,
  type TypeObject,
  type Variable,
  type VariableType,
} from "./simulator-variables.ts";

export { njProgram } from "./simulator-plant.ts";
export { OmronProgram, type VariableValue } from "./simulator-variables.ts";

const NX102: Identity = { vendor: 47, deviceType: 0x0e, productCode: 1637, revision: [1, 50], serial: 0x0102_0a0b, name: "NX102-1200" };
const CLASS = { identity: 0x01, names: 0x6a, variable: 0x6b, type: 0x6c } as const;
const SERVICE = { attributesAll: 0x01, read: 0x4c, list: 0x5f } as const;
const STATUS = {
  segment: { general: 0x04 },
  unknown: { general: 0x05 },
  noService: { general: 0x08 },
  starting: { general: 0x0c, extended: [0x8010] },
  tooLarge: { general: 0x11 },
  parameter: { general: 0x20 },
} as const satisfies Record<string, CipStatus>;
const MOST_COUNT = 0xffff;

/** The objects of an NJ or NX controller. Every public field is its state and may be set while it runs. */
export class OmronCpu {
  readonly program: OmronProgram;
  readonly identity = NX102;
  /** False: classes 6A, 6B and 6C are services that are not there. */
  lists = true;
  /** False: it knows no simple data segment on arrays. */
  givesParts = true;
  isStarting = false;
  /** Every read of a variable is refused with this. */
  refusesAll: CipStatus | undefined;
  onViolation: (words: string) => void = () => {};
  readonly counts = { reads: 0, parts: 0, rows: 0 };

  constructor(program: OmronProgram) {
    this.program = program;
  }

  execute(request: CipRequest, room: number): CipReply {
    const reply = this.#answer(request);
    return replyBytes(reply) > room ? STATUS.tooLarge : reply;
  }

  #answer(request: CipRequest): CipReply {
    const { service, path } = request;
    const [first, second] = path;
    if (first?.kind === "class" && second?.kind === "instance") return this.#object(request, first.value, second.value);
    if (service !== SERVICE.read) {
      this.onViolation(`service 0x${service.toString(16)} on a variable`);
      return STATUS.noService;
    }
    if (this.isStarting) return STATUS.starting;
    return this.refusesAll ?? this.#read(request);
  }

  #object({ service, data }: CipRequest, cls: number, instance: number): CipReply {
    if (cls === CLASS.identity && service === SERVICE.attributesAll) return { general: 0, data: identityBytes(this.identity) };
    const isListing = cls === CLASS.names || cls === CLASS.variable || cls === CLASS.type;
    if (!isListing || (service !== SERVICE.attributesAll && service !== SERVICE.list)) {
      this.onViolation(`service 0x${service.toString(16)} on class 0x${cls.toString(16)}`);
      return STATUS.noService;
    }
    if (!this.lists) return STATUS.noService;
    if (this.isStarting) return STATUS.starting;
    if (cls === CLASS.names && service === SERVICE.list) return this.#page(data);
    if (cls === CLASS.names) return { general: 0, data: Buffer.concat([word(0), word(this.program.variables.size)]) };
    if (cls === CLASS.variable) {
      const variable = [...this.program.variables.values()].find((one) => one.instance === instance);
      return variable ? { general: 0, data: variableBytes(variable) } : STATUS.unknown;
    }
    const type = this.program.types.get(instance);
    return type ? { general: 0, data: typeBytes(type) } : STATUS.unknown;
  }

  #page(data: Buffer): CipReply {
    if (data.length !== 10) return STATUS.parameter;
    const [from, count, kind] = [data.readUInt32LE(0), data.readUInt32LE(4), data.readUInt16LE(8)];
    const all = this.program.published(kind === 1);
    const entries = all.slice(from - 1, from - 1 + count).map(({ instance, name }) => {
      const text = Buffer.from(name);
      const entry = Buffer.concat([word(CLASS.variable), doubleWord(instance), Buffer.of(text.length), text]);
      return Buffer.concat([doubleWord(instance), word(entry.length), entry]);
    });
    const hasMore = from - 1 + entries.length < all.length;
    return { general: 0, data: Buffer.concat([word(entries.length), Buffer.of(hasMore ? 1 : 0, 0), ...entries]) };
  }

  #read({ path, data }: CipRequest): CipReply {
    const part = path.at(-1)?.kind === "data" ? path.at(-1) : undefined;
    const found = this.#find(part ? path.slice(0, -1) : path);
    if ("general" in found) return found;
    const count = data.length === 2 ? data.readUInt16LE(0) : 0;
    if (count < 1) return STATUS.parameter;
    if (part?.kind === "data") return this.#part(found, part.offset, part.bytes);
    this.counts.reads++;
    if (count === 1) return { general: 0, data: valueBytes(found) };
    this.counts.rows++;
    return rowBytes(found, count);
  }

  /** An offset beyond the end is refused; a part ends with the memory. */
  #part({ type, memory }: Place, offset: number, bytes: number): CipReply {
    this.counts.parts++;
    if (offset >= memory.length || bytes === 0) return STATUS.parameter;
    if (!this.givesParts && type.dimensions.length > 0) return STATUS.parameter;
    const data = memory.subarray(offset, offset + bytes);
    const length = type.code === CODES.text ? word(data.length) : Buffer.alloc(0);
    return { general: 0, data: Buffer.concat([headOf(type), length, data]) };
  }

  #find(path: readonly Segment[]): Place | CipStatus {
    const [first] = path;
    const variable = first?.kind === "symbol" ? this.program.variables.get(first.name.toLowerCase()) : undefined;
    if (!variable) return STATUS.segment;
    if (!variable.isPublished) return STATUS.unknown;
    let place: Place = { type: variable.type, memory: variable.memory };
    for (let i = 1; i < path.length; ) {
      const segment = path[i];
      if (segment?.kind === "symbol") {
        const member = place.type.structure?.members.find(({ name }) => name.toLowerCase() === segment.name.toLowerCase());
        if (!member || place.type.dimensions.length > 0) return STATUS.segment;
        place = { type: member.type, memory: place.memory.subarray(member.offset, member.offset + sizeOf(member.type)) };
        i++;
        continue;
      }
      const { type } = place;
      const indices = path.slice(i, i + type.dimensions.length);
      if (type.dimensions.length === 0 || indices.length < type.dimensions.length) return STATUS.segment;
      let flat = 0;
      for (const [d, index] of indices.entries()) {
        const own = index.kind === "element" ? index.value - (type.firsts[d] ?? 0) : -1;
        if (own < 0 || own >= (type.dimensions[d] ?? 0)) return STATUS.unknown;
        flat = flat * (type.dimensions[d] ?? 0) + own;
      }
      place = elementAt(place, flat);
      i += indices.length;
    }
    return place;
  }
}

/** A value with its bytes; of an element of an array also where it is in it, for rows. */
interface Place {
  readonly type: VariableType;
  readonly memory: Buffer;
  readonly array?: { readonly type: VariableType; readonly memory: Buffer; readonly flat: number };
}

const isBit = (memory: Buffer, i: number): boolean => ((memory[i >> 3] ?? 0) & (1 << (i & 7))) !== 0;

function elementAt({ type, memory }: Place, flat: number): Place {
  const array = { type, memory, flat };
  const element = elementOf(type);
  if (type.code === CODES.bool) return { type: element, memory: Buffer.of(isBit(memory, flat) ? 1 : 0, 0), array };
  return { type: element, memory: memory.subarray(flat * type.bytes, (flat + 1) * type.bytes), array };
}

const headOf = ({ code, structure }: VariableType): Buffer =>
  structure ? Buffer.concat([Buffer.of(code, 2), word(structure.crc)]) : Buffer.of(code, 0);

/** One value, or a whole array: of texts with the bytes of each word swapped. */
function valueBytes({ type, memory }: Place): Buffer {
  if (type.code === CODES.text && type.dimensions.length > 0)
    return Buffer.concat([headOf(type), Buffer.concat([memory, Buffer.alloc(memory.length & 1)]).swap16()]);
  if (type.code === CODES.text) {
    const end = memory.indexOf(0);
    const text = end < 0 ? memory : memory.subarray(0, end);
    return Buffer.concat([headOf(type), word(text.length), text]);
  }
  // A single byte is filled up to a word.
  return Buffer.concat([headOf(type), memory, Buffer.alloc(type.dimensions.length === 0 && type.bytes === 1 ? 1 : 0)]);
}

/** Elements in a row: a BOOL is a byte here. */
function rowBytes({ array }: Place, count: number): CipReply {
  if (!array || count > MOST_COUNT || array.type.code === CODES.text) return STATUS.parameter;
  const { type, memory, flat } = array;
  if (flat + count > elementCount(type)) return STATUS.unknown;
  const data =
    type.code === CODES.bool
      ? Buffer.from(Array.from({ length: count }, (_, i) => (isBit(memory, flat + i) ? 1 : 0)))
      : memory.subarray(flat * type.bytes, (flat + count) * type.bytes);
  return { general: 0, data: Buffer.concat([headOf(type), data]) };
}

const describedCode = (type: VariableType): readonly [code: number, elementCode: number] =>
  type.dimensions.length > 0 ? [CODES.array, type.code] : [type.code, 0];

const doubles = (numbers: readonly number[]): Buffer => Buffer.concat(numbers.map(doubleWord));

/** Attributes of class 6B. */
function variableBytes({ type, typeInstance }: Variable): Buffer {
  const head = Buffer.concat([
    doubleWord(sizeOf(type)),
    Buffer.of(...describedCode(type), type.dimensions.length, 0),
    doubles(type.dimensions),
  ]);
  return Buffer.concat([head, Buffer.alloc(12), doubleWord(typeInstance), doubles(type.firsts)]);
}

/** Attributes of class 6C. */
function typeBytes(object: TypeObject): Buffer {
  if (object.kind === "structure") {
    const { name, crc, bytes, members } = object.structure;
    return described({
      bytes,
      codes: [CODES.structure, 0],
      dimensions: [],
      firsts: [],
      members: members.length,
      crc,
      name,
      next: 0,
      nested: members[0]?.instance ?? 0,
    });
  }
  const type = object.kind === "member" ? object.member.type : object.type;
  const { dimensions, firsts, structure } = type;
  const [name, next] = object.kind === "member" ? [object.member.name, object.next] : ["", 0];
  return described({
    bytes: sizeOf(type),
    codes: describedCode(type),
    dimensions,
    firsts,
    members: 0,
    crc: 0,
    name,
    next,
    nested: structure?.type ?? 0,
  });
}

interface Description {
  readonly bytes: number;
  readonly codes: readonly [number, number];
  readonly dimensions: readonly number[];
  readonly firsts: readonly number[];
  readonly members: number;
  readonly crc: number;
  readonly name: string;
  readonly next: number;
  readonly nested: number;
}

function described({ bytes, codes, dimensions, firsts, members, crc, name, next, nested }: Description): Buffer {
  const text = Buffer.from(name);
  const head = Buffer.concat([
    doubleWord(bytes),
    Buffer.of(0, ...codes, dimensions.length),
    doubles(dimensions),
    word(members),
    Buffer.alloc(4),
    word(crc),
  ]);
  const pad = Buffer.alloc(text.length % 2 === 0 ? 1 : 0);
  return Buffer.concat([head, Buffer.of(text.length), text, pad, doubleWord(next), doubleWord(nested), doubles(firsts)]);
}

/** A controller that is reached without a route, with connections of 1994 bytes. */
export async function startOmronDevice(
  options: { readonly program?: OmronProgram; readonly port?: number; readonly host?: string; readonly layout?: "compact" | "micro" } = {},
): Promise<{ readonly device: CipDevice; readonly cpu: OmronCpu }> {
  const { program = njProgram(), layout = "micro", ...listening } = options;
  const cpu = new OmronCpu(program);
  const device = await startCipDevice({ ...listening, layout, controller: cpu });
  cpu.onViolation = (words) => device.noteViolation(words);
  device.manager.grants.largeBytes = 1994;
  return { device, cpu };
}

/** A controller with a variable of every type. */
export interface OmronSimulator extends Simulator {
  readonly device: CipDevice;
  readonly cpu: OmronCpu;
}

export async function startOmronSimulator(options?: Parameters<StartSimulator>[0]): Promise<OmronSimulator> {
  const { device, cpu } = await startOmronDevice(options);
  return {
    device,
    cpu,
    port: device.port,
    details: (host, port) => ({ type: "vendor_a", host, port }),
    variables: NJ_VARIABLES,
    missing: { address: "NoSuchVariable", type: "DINT" },
    malformed: NJ_MALFORMED,
    connections: () => device.connections(),
    close: () => device.close(),
  };
}
