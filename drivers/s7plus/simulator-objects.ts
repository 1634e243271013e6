import { elementCrc, STRUCTURE } from "./simulator-paths.ts";
import { AREAS, type Block, type Bounds, type Layout, type Member, type S7PlusProgram } from "./simulator-program.ts";
import { DTL } from "./simulator-values.ts";
import { Writer } from "./simulator-wire.ts";

// Tags of objects.
const [OBJECT, END, ATTRIBUTE, TYPE_LIST, NAME_LIST] = [0xa1, 0xa2, 0xa3, 0xab, 0xac];
const [WSTRING, UDINT, ULINT] = [0x15, 0x04, 0x05];
/** Classes and attributes of what can be explored. */
const CLASSES = { program: 2520, block: 2574, types: 534, type: 511 } as const;
const ATTRIBUTES = {
  name: 233,
  number: 2521,
  comment: 4288,
  size: 1502,
  typeChanged: 529,
  blockChanged: 7733,
  blockLoaded: 2529,
  areaChanged: 3737,
} as const;
/** Objects that an explore request names. */
export const EXPLORED = { program: 3, types: 537 } as const;
const KINDS = { plain: 8, text: 9, array: 10, matrix: 11, structure: 12, structures: 13, structureMatrix: 14, instance: 15 } as const;
const [VISIBLE, ACCESSIBLE, OPTIMIZED] = [0x0800, 0x0200, 0x0080];
const FUNCTION_BLOCK = 30;
const DIMENSIONS = 6;

/** What a client asks to see. */
export interface Exploring {
  readonly id: number;
  /** Empty: all, lists of members among them. */
  readonly attributes: readonly number[];
  /** The class that a filter names: its objects come without what holds them. */
  readonly filter: number | undefined;
  /** Bytes of one block of a list of types or names at most. */
  readonly listBytes: number;
  /** True: objects say when they were changed. */
  readonly stamps: boolean;
}

/** What the request shows, piece by piece; undefined: there is no such object. */
export function explored(program: S7PlusProgram, asked: Exploring): Iterable<Buffer> | undefined {
  if (asked.id === EXPLORED.program) return programObjects(program, asked);
  if (asked.id === EXPLORED.types) return typeObjects(program, asked);
  const block = program.block(asked.id);
  if (block && asked.attributes.length > 0) return [new Writer().bytes(blockObject(program, asked.id, block, asked)).done()];
  const layout = program.layout(asked.id);
  return layout && [typeObject(program, layout, asked)];
}

const open = (writer: Writer, rid: number, classId: number): Writer => writer.u8(OBJECT).u32(rid).vlq(classId).vlq(0).vlq(0);

function* programObjects(program: S7PlusProgram, asked: Exploring): Generator<Buffer> {
  if (asked.filter === undefined)
    yield attributesOf(open(new Writer(), EXPLORED.program, CLASSES.program), asked, { name: "PLC_1" }).done();
  for (const [rid, block] of program.blocks()) yield blockObject(program, rid, block, asked);
  if (asked.filter === undefined) yield new Writer().u8(END).done();
}

function blockObject(program: S7PlusProgram, rid: number, block: Block, asked: Exploring): Buffer {
  const { comment, number, name } = block;
  const stamps = { blockLoaded: program.loadedAt(rid), blockChanged: program.stampOf(rid) };
  const writer = open(new Writer(), rid, CLASSES.block);
  return attributesOf(writer, asked, { name, number, ...(comment !== undefined && { comment }), ...stamps })
    .u8(END)
    .done();
}

function* typeObjects(program: S7PlusProgram, asked: Exploring): Generator<Buffer> {
  yield open(new Writer(), EXPLORED.types, CLASSES.types).done();
  for (const rid of program.types()) {
    const layout = program.layout(rid);
    if (layout) yield typeObject(program, layout, asked);
  }
  yield new Writer().u8(END).done();
}

function typeObject(program: S7PlusProgram, layout: Layout, asked: Exploring): Buffer {
  const { rid, name, members } = layout;
  const stamp = program.stampOf(rid);
  const isArea = Object.values(AREAS).some(([, type]) => type === rid);
  const writer = open(new Writer(), rid, CLASSES.type);
  attributesOf(writer, asked, { name, size: members.length * 4, typeChanged: stamp, ...(isArea && { areaChanged: stamp }) });
  if (asked.attributes.length === 0 && members.length > 0) {
    const elements = members.map((member, i) => elementOf(member, i));
    list(writer.u8(TYPE_LIST), elements, asked.listBytes, members[0]?.lid);
    const names = members.map(({ field }) => Buffer.from(field.name));
    list(
      writer.u8(NAME_LIST),
      names.map((bytes) => new Writer().u8(bytes.length).bytes(bytes).u8(0).done()),
      asked.listBytes,
    );
  }
  return writer.u8(END).done();
}

function attributesOf(
  writer: Writer,
  { attributes, stamps }: Exploring,
  values: Partial<Record<keyof typeof ATTRIBUTES, string | number | bigint>>,
): Writer {
  for (const [key, value] of Object.entries(values)) {
    const id = ATTRIBUTES[key as keyof typeof ATTRIBUTES];
    if ((attributes.length > 0 && !attributes.includes(id)) || (typeof value === "bigint" && !stamps)) continue;
    writer.u8(ATTRIBUTE).vlq(id).u8(0);
    if (typeof value === "string") writer.u8(WSTRING).vlq(Buffer.byteLength(value)).bytes(Buffer.from(value));
    else if (typeof value === "bigint") writer.u8(ULINT).vlq64(value);
    else writer.u8(UDINT).vlq(value);
  }
  return writer;
}

/** Entries in blocks of so many bytes, each behind its length; one of length 0 ends them. */
function list(writer: Writer, entries: readonly Buffer[], maxBytes: number, firstId?: number): void {
  let block = new Writer();
  if (firstId !== undefined) block.u32le(firstId);
  for (const entry of entries) {
    if (block.length > 0 && block.length + entry.length > maxBytes) {
      writer.u16(block.length).bytes(block.done());
      block = new Writer();
    }
    block.bytes(entry);
  }
  writer.u16(block.length).bytes(block.done()).u16(0);
}

function kindOf({ field, elementary, rid }: Member): number {
  const dimensions = field.bounds?.length ?? 0;
  const isText = elementary?.chars !== undefined;
  if (rid !== undefined) {
    if (dimensions > 0) return dimensions > 1 ? KINDS.structureMatrix : KINDS.structures;
    return isFunctionBlock(rid) ? KINDS.instance : KINDS.structure;
  }
  if (dimensions > 0) return dimensions > 1 ? KINDS.matrix : KINDS.array;
  return isText ? KINDS.text : KINDS.plain;
}

const isFunctionBlock = (rid: number): boolean => rid >>> 24 === 0x92;

function softOf({ elementary, rid }: Member): number {
  if (elementary) return elementary.soft;
  if (rid === DTL.rid) return DTL.soft;
  return rid !== undefined && isFunctionBlock(rid) ? FUNCTION_BLOCK : STRUCTURE;
}

/** One row of a type list. Where a value is in memory is made up: nobody who reads by ids needs it. */
function elementOf(member: Member, place: number): Buffer {
  const { field, lid } = member;
  const kind = kindOf(member);
  const flags = (kind << 12) | (field.hidden ? 0 : VISIBLE | ACCESSIBLE) | OPTIMIZED;
  const writer = new Writer().u32le(lid).u32le(elementCrc(member)).u8(softOf(member)).u16(flags).u8(0);
  offsetInfo(writer, kind, member, place * 8);
  return writer.done();
}

function offsetInfo(writer: Writer, kind: number, { field, elementary, rid = 0 }: Member, offset: number): void {
  const bounds = field.bounds ?? [];
  const chars = elementary?.chars ?? 0;
  const isFlat = bounds.length === 1;
  switch (kind) {
    case KINDS.plain:
      writer.u16le(offset, offset);
      break;
    case KINDS.text:
      writer.u16le(chars, chars + 2).u32le(offset, offset);
      break;
    case KINDS.structure:
      writer.u16le(0, 0).u32le(offset, offset, rid, 0, 0, 0, 0);
      break;
    case KINDS.instance:
      writer.u16le(0, 0).u32le(offset, offset, rid, 0, 0, 0, 0, offset, offset);
      break;
    default:
      writer.u16le(chars, 0).u32le(offset, offset);
      // The lower bound of all elements as one row: that of the first dimension.
      writer.u32le(isFlat ? (bounds[0]?.[0] ?? 0) : 0, countOf(bounds));
      if (!isFlat) dimensions(writer, bounds);
      if (rid !== 0) writer.u32le(8, 8, rid, 0, 0, 0, 0);
  }
}

const lengthOf = ([low, high]: Bounds): number => high - low + 1;
const countOf = (bounds: readonly Bounds[]): number => bounds.reduce((product, one) => product * lengthOf(one), 1);

/** Lower bounds, then lengths: the innermost dimension first, those that are not used with the length 0. */
function dimensions(writer: Writer, bounds: readonly Bounds[]): void {
  const inner = bounds.toReversed();
  for (let i = 0; i < DIMENSIONS; i++) writer.u32le(inner[i]?.[0] ?? 0);
  for (const one of Array.from({ length: DIMENSIONS }, (_, i) => inner[i])) writer.u32le(one ? lengthOf(one) : 0);
}
