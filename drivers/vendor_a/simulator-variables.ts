/** Types, variables and memory of an Omron NJ or NX controller (W506, chapter 8, and independent clients), for the simulator. Little-endian. */

export type VariableScalar = boolean | number | bigint | string;
/** An array has its elements, row by row, and a structure its members by name; zero for those that are left out. */
export type VariableValue = VariableScalar | readonly VariableValue[] | { readonly [member: string]: VariableValue };

interface Plain {
  readonly code: number;
  readonly bytes: number;
}

const PLAIN: Readonly<Record<string, Plain>> = {
  BOOL: { code: 0xc1, bytes: 2 },
  SINT: { code: 0xc2, bytes: 1 },
  INT: { code: 0xc3, bytes: 2 },
  DINT: { code: 0xc4, bytes: 4 },
  LINT: { code: 0xc5, bytes: 8 },
  USINT: { code: 0xc6, bytes: 1 },
  UINT: { code: 0xc7, bytes: 2 },
  UDINT: { code: 0xc8, bytes: 4 },
  ULINT: { code: 0xc9, bytes: 8 },
  REAL: { code: 0xca, bytes: 4 },
  LREAL: { code: 0xcb, bytes: 8 },
  BYTE: { code: 0xd1, bytes: 1 },
  WORD: { code: 0xd2, bytes: 2 },
  DWORD: { code: 0xd3, bytes: 4 },
  LWORD: { code: 0xd4, bytes: 8 },
  UINT_BCD: { code: 0x04, bytes: 2 },
  UDINT_BCD: { code: 0x05, bytes: 4 },
  ULINT_BCD: { code: 0x06, bytes: 8 },
  ENUM: { code: 0x07, bytes: 4 },
  DATE: { code: 0x08, bytes: 8 },
  TIME: { code: 0xdb, bytes: 8 },
  DATE_AND_TIME: { code: 0x0a, bytes: 8 },
  TIME_OF_DAY: { code: 0x0b, bytes: 8 },
};
export const CODES = { bool: 0xc1, text: 0xd0, structure: 0xa0, array: 0xa3 } as const;

/** A structure type; `type`: its instance of class 6C. */
export interface Declared {
  readonly name: string;
  readonly type: number;
  readonly crc: number;
  readonly bytes: number;
  readonly alignment: number;
  readonly members: readonly DeclaredMember[];
}

interface DeclaredMember {
  readonly name: string;
  readonly type: VariableType;
  readonly offset: number;
  /** Its own instance of class 6C. */
  readonly instance: number;
}

export interface VariableType {
  readonly word: string;
  readonly code: number;
  /** Size of one element. */
  readonly bytes: number;
  readonly alignment: number;
  readonly dimensions: readonly number[];
  readonly firsts: readonly number[];
  readonly structure?: Declared;
}

export const elementCount = ({ dimensions }: Pick<VariableType, "dimensions">): number => dimensions.reduce((product, n) => product * n, 1);
const isBits = ({ code, dimensions }: VariableType): boolean => code === CODES.bool && dimensions.length > 0;
/** In memory: BOOLs of an array share words. */
export const sizeOf = (type: VariableType): number =>
  isBits(type) ? Math.ceil(elementCount(type) / 16) * 2 : elementCount(type) * type.bytes;
/** An element, without the array. */
export const elementOf = (type: VariableType): VariableType => ({ ...type, dimensions: [], firsts: [] });

const up = (at: number, to: number): number => at + ((to - (at % to)) % to);

export interface Variable {
  readonly name: string;
  readonly type: VariableType;
  readonly memory: Buffer;
  /** False: its Network Publish attribute is not set. */
  readonly isPublished: boolean;
  /** Class 6B. */
  readonly instance: number;
  /** Class 6C; 0: its type is an elementary one. */
  readonly typeInstance: number;
}

/** An instance of class 6C: a structure type, a member of one, or an array of structures. */
export type TypeObject =
  | { readonly kind: "structure"; readonly structure: Declared }
  | { readonly kind: "member"; readonly member: DeclaredMember; readonly next: number }
  | { readonly kind: "array"; readonly type: VariableType };

/** Declarations of a program. */
export class OmronProgram {
  readonly variables = new Map<string, Variable>();
  readonly types = new Map<number, TypeObject>();
  readonly #structures = new Map<string, Declared>();
  #nextType = 1;
  #nextVariable = 1;

  /** `DINT`, `REAL[1..10]`, `INT[0..1,2..4]`, `STRING(20)`, or a structure. Throws RangeError. */
  type(text: string): VariableType {
    const [, word = "", length, bounds] = /^(\w+)(?:\((\d+)\))?(?:\[([\d.,]+)\])?$/.exec(text) ?? [];
    const pairs = bounds?.split(",").map((pair) => pair.split("..").map(Number)) ?? [];
    const firsts = pairs.map(([first = 0]) => first);
    const dimensions = pairs.map(([first = 0, last = 0]) => last - first + 1);
    const known = { word, dimensions, firsts };
    if (word === "STRING") return { ...known, code: CODES.text, bytes: Number(length ?? 256), alignment: 1 };
    const structure = this.#structures.get(word);
    if (structure) return { ...known, code: CODES.structure, bytes: structure.bytes, alignment: structure.alignment, structure };
    const plain = PLAIN[word];
    if (!plain) throw new RangeError(`the simulator has no type ${text}`);
    return { ...known, ...plain, alignment: plain.bytes };
  }

  structure(name: string, members: readonly (readonly [name: string, type: string])[]): void {
    const type = this.#nextType++;
    const laid: DeclaredMember[] = [];
    let at = 0;
    for (const [member, text] of members) {
      const own = this.type(text);
      at = up(at, own.alignment);
      laid.push({ name: member, type: own, offset: at, instance: this.#nextType++ });
      at += sizeOf(own);
    }
    const alignment = Math.max(...laid.map((member) => member.type.alignment));
    let crc = 0x1d0f;
    for (const character of JSON.stringify(members)) crc = ((crc ^ character.charCodeAt(0)) * 0x0193) & 0xffff;
    const structure: Declared = { name, type, crc, bytes: up(at, alignment), alignment, members: laid };
    this.#structures.set(name, structure);
    this.types.set(type, { kind: "structure", structure });
    for (const [i, member] of laid.entries()) this.types.set(member.instance, { kind: "member", member, next: laid[i + 1]?.instance ?? 0 });
  }

  variable(name: string, text: string, value?: VariableValue, { isPublished = true } = {}): Variable {
    const type = this.type(text);
    const isArrayOfStructures = type.structure !== undefined && type.dimensions.length > 0;
    const typeInstance = isArrayOfStructures ? this.#nextType++ : (type.structure?.type ?? 0);
    if (isArrayOfStructures) this.types.set(typeInstance, { kind: "array", type });
    const variable = { name, type, memory: Buffer.alloc(sizeOf(type)), isPublished, instance: this.#nextVariable++, typeInstance };
    if (value !== undefined) put(variable.memory, 0, type, value);
    this.variables.set(name.toLowerCase(), variable);
    return variable;
  }

  set(name: string, value: VariableValue): void {
    const variable = this.variables.get(name.toLowerCase());
    if (!variable) throw new RangeError(`there is no variable ${name}`);
    put(variable.memory, 0, variable.type, value);
  }

  /** `isSystem`: those whose names begin with an underscore. In the order of their instances. */
  published(isSystem: boolean): readonly Variable[] {
    return [...this.variables.values()].filter(({ name, isPublished }) => isPublished && name.startsWith("_") === isSystem);
  }
}

function put(memory: Buffer, at: number, type: VariableType, value: VariableValue): void {
  if (type.dimensions.length === 0) putOne(memory, at, type, value);
  else
    for (const [i, one] of (value as readonly VariableValue[]).entries())
      if (isBits(type)) putBit(memory, at, i, one === true);
      else putOne(memory, at + i * type.bytes, type, one);
}

function putBit(memory: Buffer, at: number, bit: number, isSet: boolean): void {
  const place = at + (bit >> 3);
  const mask = 1 << (bit & 7);
  memory[place] = isSet ? (memory[place] ?? 0) | mask : (memory[place] ?? 0) & ~mask;
}

function putOne(memory: Buffer, at: number, { word, bytes, structure }: VariableType, value: VariableValue): void {
  if (structure) {
    for (const member of structure.members) {
      const own = (value as Record<string, VariableValue>)[member.name];
      if (own !== undefined) put(memory, at + member.offset, member.type, own);
    }
  } else if (word === "STRING") {
    memory.fill(0, at, at + bytes);
    // The last byte is the NUL that ends a text.
    Buffer.from(String(value)).copy(memory, at, 0, bytes - 1);
  } else if (word === "REAL") memory.writeFloatLE(Number(value), at);
  else if (word === "LREAL") memory.writeDoubleLE(Number(value), at);
  else if (word === "BOOL") memory[at] = value === true ? 1 : 0;
  else {
    const whole = word.endsWith("_BCD") ? BigInt(`0x${String(value)}`) : BigInt(value as number | bigint);
    const wide = Buffer.alloc(8);
    wide.writeBigUInt64LE(BigInt.asUintN(64, whole));
    wide.copy(memory, at, 0, bytes);
  }
}
