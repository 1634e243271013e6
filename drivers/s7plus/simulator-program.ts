import type { Scalar, Value } from "../../src/model/value.ts";
import { placesOf } from "./simulator-places.ts";
import { DTL, type Elementary, elementaryOf } from "./simulator-values.ts";

/** Bounds of one dimension, both among them. */
export type Bounds = readonly [low: number, high: number];

/** A member of a block, a structure or a table of tags. */
export interface Field {
  readonly name: string;
  /** `INT`, `STRING[20]`, `DTL`, or the name of a structure of the program. */
  readonly type: string;
  /** Of an array; the outermost first. */
  readonly bounds?: readonly Bounds[];
  /** Of an array: all elements, row by row. Absent: zero. */
  readonly value?: Value;
  /** HMI devices neither see nor read it. */
  readonly hidden?: true;
}

export interface Block {
  /** 1 to 65535. */
  readonly number: number;
  readonly name: string;
  /** Called when they are first needed, and again when they have been forgotten. */
  readonly fields: readonly Field[] | (() => readonly Field[]);
  /** A structure that the block is an instance of, in the place of fields of its own. */
  readonly instanceOf?: string;
  /** It is in load memory only: nothing of it can be read. */
  readonly unloaded?: true;
  readonly comment?: string;
}

export type AreaLetter = "I" | "Q" | "M" | "T" | "C";

export interface ProgramDeclaration {
  readonly structures?: Readonly<Record<string, readonly Field[]>>;
  readonly blocks?: readonly Block[];
  readonly tags?: Partial<Record<AreaLetter, readonly Field[]>>;
}

/** What a download does beside the program that it brings. */
export interface Download {
  /** Ids of all members: kept, those of the first program, counted from another number, or turned so that each is another member's now. */
  readonly ids?: "kept" | "first" | "shifted" | "turned";
  /** What clients have in mind of the time of changes stays true: as if the CPU did not count the download as a change. */
  readonly keepsStamps?: true;
  /** Blocks that are declared as before are not loaded again. */
  readonly onlyChanges?: true;
}

/** How a program numbers its members: in their order from `first` on, turned by `turn` places. */
export interface Numbering {
  readonly first: number;
  readonly turn: number;
}

export const FIRST_NUMBERING: Numbering = { first: 9, turn: 0 };

export interface Member {
  readonly lid: number;
  readonly field: Field;
  /** Undefined: a structure, or DTL. */
  readonly elementary: Elementary | undefined;
  /** RID of the structure's type. */
  readonly rid: number | undefined;
}

/** What the CPU knows of one type: a structure, a block with members of its own, an area. */
export interface Layout {
  readonly rid: number;
  readonly name: string;
  readonly members: readonly Member[];
  readonly byLid: ReadonlyMap<number, Member>;
}

/** A symbol that can be read by itself. */
export interface Symbol {
  readonly name: string;
  /** `8A0E0001.A.2`. */
  readonly access: string;
  readonly type: string;
}

export const BLOCK_AREA = 0x8a0e0000;
/** Ids of the areas in addresses, of their types, and their names. */
export const AREAS: Readonly<Record<AreaLetter, readonly [area: number, rid: number, name: string]>> = {
  I: [0x50, 0x90010000, "IArea"],
  Q: [0x51, 0x90020000, "QArea"],
  M: [0x52, 0x90030000, "MArea"],
  C: [0x53, 0x90060000, "S7Counters"],
  T: [0x54, 0x90050000, "S7Timers"],
};
const [FIRST_STRUCTURE, FIRST_FUNCTION_BLOCK] = [0x91000001, 0x92000001];
const KEPT_LAYOUTS = 256;
const FIRST_STAMP = 1_790_000_000_000_000_000n;
const PLAIN = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** How symbols of an area begin: tags have no block, timers and counters the name of their area. */
export const rootOf = (letter: string): string => (letter === "T" || letter === "C" ? AREAS[letter][2] : "");

/** A level of a name, in quotes where it has other characters than letters, digits and _. */
export const quoted = (name: string): string => (PLAIN.test(name) ? name : `"${name}"`);

/** What comes behind a structure's or a DTL's index. */
export const BEHIND_INDEX = 1;

/** The program of a CPU: its blocks, types and tags, the ids that it gave them, and the values. */
export class S7PlusProgram {
  readonly declaration: ProgramDeclaration;
  readonly numbering: Numbering;
  /** When it was loaded: ns since 1970. */
  readonly stamp: bigint;
  readonly #stamps = new Map<number, bigint>();
  readonly #loaded = new Map<number, bigint>();
  /** By symbol; what is not in it has its start value. A next program takes them over. */
  readonly values: Map<string, Scalar>;
  readonly #structures = new Map<string, number>();
  readonly #names = new Map<number, string>();
  readonly #blocks = new Map<number, Block>();
  readonly #layouts = new Map<number, Layout>();

  constructor(
    declaration: ProgramDeclaration,
    before?: S7PlusProgram,
    numbering: Numbering = FIRST_NUMBERING,
    { keepsStamps, onlyChanges }: Pick<Download, "keepsStamps" | "onlyChanges"> = {},
  ) {
    this.declaration = declaration;
    this.numbering = numbering;
    this.stamp = before === undefined ? FIRST_STAMP : before.stamp + 1_000_000_007n;
    this.values = before?.values ?? new Map();
    const instances = new Set(declaration.blocks?.map(({ instanceOf }) => instanceOf));
    let [structure, functionBlock] = [FIRST_STRUCTURE, FIRST_FUNCTION_BLOCK];
    for (const name of Object.keys(declaration.structures ?? {})) {
      const rid = instances.has(name) ? functionBlock++ : structure++;
      this.#structures.set(name, rid);
      this.#names.set(rid, name);
    }
    for (const block of declaration.blocks ?? []) this.#blocks.set(BLOCK_AREA + block.number, block);
    if (before) this.#keepStamps(before, keepsStamps === true, onlyChanges === true);
  }

  /** What is declared as before, with the same ids, has not changed. */
  #keepStamps(before: S7PlusProgram, all: boolean, onlyChanges: boolean): void {
    const { first, turn } = this.numbering;
    const areSame = before.numbering.first === first && before.numbering.turn === turn;
    const isKept = (rid: number) => all || (areSame && before.#declared(rid) === this.#declared(rid));
    for (const rid of this.types()) if (isKept(rid)) this.#stamps.set(rid, before.stampOf(rid));
    for (const rid of this.#blocks.keys())
      if (all || (onlyChanges && isKept(rid))) {
        this.#stamps.set(rid, before.stampOf(rid));
        this.#loaded.set(rid, before.loadedAt(rid));
      }
  }

  #declared(rid: number): unknown {
    const { structures, tags } = this.declaration;
    const area = Object.entries(AREAS).find(([, [, type]]) => type === rid);
    if (area) return tags?.[area[0] as AreaLetter];
    return this.#blocks.get(rid)?.fields ?? structures?.[this.#names.get(rid) ?? ""];
  }

  /** When the type changed last: ns since 1970. */
  stampOf(rid: number): bigint {
    return this.#stamps.get(rid) ?? this.stamp;
  }

  /** When the block was loaded last: ns since 1970. */
  loadedAt(rid: number): bigint {
    return this.#loaded.get(rid) ?? this.stamp;
  }

  blocks(): Iterable<readonly [rid: number, block: Block]> {
    return this.#blocks.entries();
  }

  block(rid: number): Block | undefined {
    return this.#blocks.get(rid);
  }

  /** The RID of the type of a block: its own, or that of what it is an instance of. */
  typeOfBlock(rid: number): number | undefined {
    const block = this.#blocks.get(rid);
    if (!block || block.unloaded) return undefined;
    return block.instanceOf === undefined ? rid : this.#structures.get(block.instanceOf);
  }

  isFunctionBlock(rid: number): boolean {
    return rid >>> 24 === FIRST_FUNCTION_BLOCK >>> 24;
  }

  /** RIDs of all types, those of areas and of S7 itself among them. */
  *types(): Generator<number> {
    for (const [, rid] of Object.values(AREAS)) yield rid;
    yield DTL.rid;
    yield* this.#structures.values();
    for (const [rid, { instanceOf }] of this.#blocks) if (instanceOf === undefined) yield rid;
  }

  /** Undefined: there is no such type. Made when it is needed, and again where it was forgotten, so that a large program takes little memory. */
  layout(rid: number): Layout | undefined {
    const kept = this.#layouts.get(rid);
    if (kept) return kept;
    const made = this.#make(rid);
    if (!made) return undefined;
    const [oldest] = this.#layouts.keys();
    if (this.#layouts.size >= KEPT_LAYOUTS && oldest !== undefined) this.#layouts.delete(oldest);
    this.#layouts.set(rid, made);
    return made;
  }

  #make(rid: number): Layout | undefined {
    const area = Object.entries(AREAS).find(([, [, type]]) => type === rid);
    if (area) return this.#layoutOf(rid, area[1][2], this.declaration.tags?.[area[0] as AreaLetter] ?? []);
    if (rid === DTL.rid)
      return this.#layoutOf(
        rid,
        DTL.word,
        DTL.members.map(([name, type]) => ({ name, type })),
      );
    const name = this.#names.get(rid);
    if (name !== undefined) return this.#layoutOf(rid, name, this.declaration.structures?.[name] ?? []);
    const block = this.#blocks.get(rid);
    if (!block || block.instanceOf !== undefined) return undefined;
    return this.#layoutOf(rid, block.name, typeof block.fields === "function" ? block.fields() : block.fields);
  }

  #layoutOf(rid: number, name: string, fields: readonly Field[]): Layout {
    // What is S7's own is the same in all programs.
    const { first, turn } = rid === DTL.rid ? FIRST_NUMBERING : this.numbering;
    const members = fields.map((field, i): Member => {
      const elementary = elementaryOf(field.type);
      const structure = field.type === DTL.word ? DTL.rid : this.#structures.get(field.type);
      if (!elementary && structure === undefined) throw new TypeError(`${field.name}: there is no type ${field.type}`);
      return { lid: first + ((i + turn) % fields.length), field, elementary, rid: structure };
    });
    return { rid, name, members, byLid: new Map(members.map((member) => [member.lid, member])) };
  }

  /** The value of a symbol. */
  scalar(name: string, { value }: Field, element: number, zero: Scalar): Scalar {
    const put = this.values.get(name);
    if (put !== undefined) return put;
    return (Array.isArray(value) ? value[element] : value) ?? zero;
  }

  /** Sets a symbol's value; its name as `symbols` has it. */
  put(name: string, value: Scalar): void {
    this.values.set(name, value);
  }

  /** All that can be read by itself, DTLs as one. */
  *symbols(): Generator<Symbol> {
    for (const [area, block] of this.#blocks) {
      const type = this.typeOfBlock(area);
      const layout = type === undefined ? undefined : this.layout(type);
      if (layout) yield* this.#symbolsIn(layout, `"${block.name}"`, access(area));
    }
    for (const [letter, [area, rid]] of Object.entries(AREAS)) {
      const layout = this.layout(rid);
      if (layout) yield* this.#symbolsIn(layout, rootOf(letter), access(area));
    }
  }

  *#symbolsIn(layout: Layout, above: string, path: string): Generator<Symbol> {
    for (const member of layout.members) {
      const { field, lid, rid } = member;
      const own = above === "" ? `"${field.name}"` : `${above}.${quoted(field.name)}`;
      const inner = rid === undefined || rid === DTL.rid ? undefined : this.layout(rid);
      for (const { index, indices } of field.bounds ? placesOf(member) : [{ index: undefined, indices: [] }]) {
        const name = index === undefined ? own : `${own}[${indices.join(",")}]`;
        const at = index === undefined ? "" : `.${access(index)}${rid === undefined ? "" : `.${BEHIND_INDEX}`}`;
        const whole = `${path}.${access(lid)}${at}`;
        if (inner) yield* this.#symbolsIn(inner, name, whole);
        else yield { name, access: whole, type: field.type };
      }
    }
  }

  /** The access path of a symbol. */
  accessOf(name: string): string {
    for (const symbol of this.symbols()) if (symbol.name === name) return symbol.access;
    throw new Error(`the program has no ${name}`);
  }
}

const access = (id: number): string => id.toString(16).toUpperCase();
