import type { CipStatus, Segment } from "./simulator-frames.ts";
import { symbolTypeOf, Templates } from "./simulator-templates.ts";
import {
  bytesOfType,
  type CipType,
  type CipValue,
  elementsOf,
  type Member,
  parseType,
  putValue,
  SHORT_STRING_BYTES,
  type Template,
} from "./simulator-types.ts";

/** Statuses of CIP that a read of a tag is refused with (volume 1, appendix B; 1756-PM020, chapter 1). */
export const STATUS = {
  ok: { general: 0 },
  connectionFailure: { general: 0x01 },
  resources: { general: 0x02 },
  parameter: { general: 0x03 },
  noSuchTag: { general: 0x04, extended: [0] },
  noSuchMember: { general: 0x05, extended: [0] },
  partial: { general: 0x06 },
  serviceUnsupported: { general: 0x08 },
  attributeList: { general: 0x0a },
  privilege: { general: 0x0f },
  replyTooLarge: { general: 0x11 },
  tooShort: { general: 0x13 },
  attributeUnsupported: { general: 0x14 },
  noSuchObject: { general: 0x16 },
  requestTooLarge: { general: 0x1a },
  embedded: { general: 0x1e },
  noPrivilege: { general: 0xff, extended: [0x2100] },
  beyondOffset: { general: 0xff, extended: [0x2104] },
  beyondEnd: { general: 0xff, extended: [0x2105] },
  downloading: { general: 0xff, extended: [0x2108] },
} as const satisfies Readonly<Record<string, CipStatus>>;

/** Attribute 10 of a symbol. */
export type Access = "full" | "readonly" | "none";

export interface TagOptions {
  /** A program's own tag; absent: controller scope. */
  readonly program?: string;
  readonly access?: Access;
  /** Controllers mark what is theirs alone. */
  readonly isSystem?: boolean;
}

export interface Tag {
  readonly name: string;
  readonly type: CipType;
  readonly bytes: Buffer;
  readonly program: string | undefined;
  access: Access;
  readonly isSystem: boolean;
  /** Of class 6B, within its scope. */
  instance: number;
}

/** The place where a path ends: so many elements from here to the end of an array, 1 for everything else. */
export interface Located {
  readonly type: CipType;
  readonly bytes: Buffer;
  readonly at: number;
  readonly count: number;
  /** Of a packed BOOL: the bit of the byte. */
  readonly bit?: number;
}

const SYMBOL_CLASS = 0x6b;
const PROGRAM_PREFIX = "program:";
const SYSTEM_BIT = 0x1000;
/** Types of names that are no tags: programs, tasks, routines, connections. */
const OTHER_TYPE = 0x68;

/** What a controller's memory holds. Everything here may change while it runs. */
export class LogixProgram {
  readonly templates = new Templates();
  /** By scope, then by name, both in lower case; the controller's scope is the empty text. */
  readonly #scopes = new Map<string, Map<string, Tag>>([["", new Map()]]);
  /** The same by scope in the order of their instances. */
  readonly #listed = new Map<string, Tag[]>([["", []]]);
  readonly #programNames: string[] = [];
  /** Counts what changes the attributes of class AC. */
  changes = 1;

  /** Makes a structure type for tags: `[["Speed", "REAL"], ["On", "BOOL"]]`. Its name may then be used as a type. */
  structure(name: string, members: readonly (readonly [name: string, type: string])[]): Template {
    this.changes++;
    let instance = 0x101;
    while (this.templates.byInstance.has(instance)) instance += 7;
    return this.templates.structure(name, instance, members);
  }

  /** Makes a string type of so many characters. */
  stringType(name: string, characters: number): Template {
    return this.structure(name, [
      ["LEN", "DINT"],
      ["DATA", `SINT[${characters}]`],
    ]);
  }

  /** Makes a program with a task and a routine of its own, which the list of symbols names too. */
  program(name: string): void {
    this.#scopes.set(name.toLowerCase(), new Map());
    this.#listed.set(name.toLowerCase(), []);
    this.#programNames.push(name);
    this.#list({ name: `Program:${name}`, program: undefined, isSystem: true, access: "full" });
    this.#list({ name: "Routine:MainRoutine", program: name, isSystem: true, access: "full" });
  }

  /** Makes a tag. Throws RangeError for a type that there is not, and for a program that was not made. */
  tag(name: string, type: string, value?: CipValue, { program, access = "full", isSystem = false }: TagOptions = {}): Tag {
    const tag = this.#list({ name, program, access, isSystem }, parseType(type, this.templates.byName));
    if (value !== undefined) putValue(tag.bytes, 0, tag.type, value);
    return tag;
  }

  #list({ name, program, access, isSystem }: Pick<Tag, "name" | "program" | "access" | "isSystem">, type?: CipType): Tag {
    const scope = program?.toLowerCase() ?? "";
    const [listed, scoped] = [this.#listed.get(scope), this.#scopes.get(scope)];
    if (!listed || !scoped) throw new RangeError(`the simulator has no program ${program}`);
    this.changes++;
    // With gaps, as after edits.
    const instance = (listed.at(-1)?.instance ?? 0) + 1 + (name.length % 3);
    const shown: CipType = type ?? { elementary: { word: "OTHER", code: OTHER_TYPE, bytes: 0 }, dimensions: [], elementBytes: 0 };
    const tag: Tag = { name, type: shown, bytes: Buffer.alloc(bytesOfType(shown)), program, access, isSystem, instance };
    listed.push(tag);
    if (type) scoped.set(name.toLowerCase(), tag);
    return tag;
  }

  /** Takes a tag away, as a download or an edit does. */
  remove(name: string, program?: string): void {
    const scope = program?.toLowerCase() ?? "";
    this.#scopes.get(scope)?.delete(name.toLowerCase());
    const listed = this.#listed.get(scope) ?? [];
    listed.splice(0, listed.length, ...listed.filter((tag) => tag.name !== name));
    this.changes++;
  }

  /** Another download: every symbol and every type that people made has another instance; names and values stay. */
  renumber(): void {
    this.changes++;
    this.templates.renumber(5);
    for (const listed of this.#listed.values()) {
      const turned = [...listed.slice(1), ...listed.slice(0, 1)];
      for (const [i, tag] of turned.entries()) tag.instance = i * 2 + 11;
      listed.splice(0, listed.length, ...turned);
    }
  }

  /** Names of the programs. */
  get programs(): readonly string[] {
    return this.#programNames;
  }

  /** Tags of a scope in the order of their instances; undefined: no such program. */
  list(program: string | undefined): readonly Tag[] | undefined {
    return this.#listed.get(program?.toLowerCase() ?? "");
  }

  find(name: string, program?: string): Tag | undefined {
    return this.#scopes.get(program?.toLowerCase() ?? "")?.get(name.toLowerCase());
  }

  /** Puts a value where a path of names leads: `Recipe1`, `Recipe1.Steps`, `Program:Main.Count`. Throws RangeError where nothing is. */
  put(text: string, value: CipValue): void {
    const [first = "", ...rest] = text.split(".");
    const names = first.toLowerCase().startsWith(PROGRAM_PREFIX) ? [`${first}`, ...rest] : [first, ...rest];
    const path = names.flatMap((name): readonly Segment[] => {
      const [, symbol = "", indexes] = /^([^[]+)(?:\[([\d,]+)\])?$/.exec(name) ?? [];
      const elements = indexes?.split(",").map((index): Segment => ({ kind: "element", value: Number(index) })) ?? [];
      return [{ kind: "symbol", name: symbol }, ...elements];
    });
    const found = this.locate(path);
    if ("general" in found) throw new RangeError(`the simulator has no ${text}`);
    if (found.bit !== undefined) throw new RangeError(`${text} is a packed BOOL: put its structure`);
    putValue(found.bytes, found.at, found.count > 1 ? found.type : { ...found.type, dimensions: [] }, value);
  }

  /** The symbol that a path begins with, and what is left of the path. */
  #symbolOf(path: readonly Segment[]): { readonly tag: Tag | undefined; readonly rest: readonly Segment[]; readonly isMissing: boolean } {
    let program: string | undefined;
    let rest = path;
    const [first] = rest;
    if (first?.kind === "symbol" && first.name.toLowerCase().startsWith(PROGRAM_PREFIX)) {
      program = first.name.slice(PROGRAM_PREFIX.length);
      rest = rest.slice(1);
    }
    const [head, second] = rest;
    if (head?.kind === "symbol") return { tag: this.find(head.name, program), rest: rest.slice(1), isMissing: false };
    if (head?.kind === "class" && head.value === SYMBOL_CLASS && second?.kind === "instance") {
      const tag = this.list(program)?.find(({ instance }) => instance === second.value);
      return { tag: tag && tag.bytes.length > 0 ? tag : undefined, rest: rest.slice(2), isMissing: true };
    }
    return { tag: undefined, rest, isMissing: false };
  }

  /** Follows symbols, elements and members to a place in the memory. */
  locate(path: readonly Segment[]): Located | CipStatus {
    const { tag, rest, isMissing } = this.#symbolOf(path);
    if (!tag) return isMissing ? STATUS.noSuchMember : STATUS.noSuchTag;
    if (tag.access === "none") return STATUS.privilege;
    let place: Located | CipStatus = { type: tag.type, bytes: tag.bytes, at: 0, count: elementsOf(tag.type) };
    for (let i = 0; i < rest.length; ) {
      const indexes: number[] = [];
      for (let segment = rest[i]; segment?.kind === "element"; segment = rest[++i]) indexes.push(segment.value);
      if (indexes.length > 0) place = element(place, indexes);
      else {
        const segment = rest[i++];
        place = segment?.kind === "symbol" ? memberOf(place, segment.name) : STATUS.noSuchMember;
      }
      if ("general" in place) return place;
    }
    return place;
  }

  /** Attribute 2 of a symbol: its type word. */
  typeWord({ type, isSystem }: Tag): number {
    return symbolTypeOf(type) | (isSystem ? SYSTEM_BIT : 0);
  }
}

function element(place: Located, indexes: readonly number[]): Located | CipStatus {
  const { dimensions, elementBytes } = place.type;
  if (indexes.length !== dimensions.length || place.bit !== undefined) return STATUS.noSuchMember;
  let at = 0;
  for (const [i, size] of dimensions.entries()) {
    const index = indexes[i] ?? 0;
    if (index >= size) return STATUS.beyondEnd;
    at = at * size + index;
  }
  return { type: place.type, bytes: place.bytes, at: place.at + at * elementBytes, count: place.count - at };
}

/** Of an array of structures without an index, the first one's. */
function memberOf({ type, bytes, at, bit }: Located, name: string): Located | CipStatus {
  const member: Member | undefined = type.template?.members.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (!member || bit !== undefined) return STATUS.noSuchMember;
  const place = { type: member.type, bytes, at: at + member.offset, count: elementsOf(member.type) };
  return member.type.elementary?.word === "BOOL" ? { ...place, bit: member.bit } : place;
}

/** The bytes of so many elements as they are sent. */
export function takeElements({ type, bytes, at, bit }: Located, count: number): Buffer {
  if (bit !== undefined) return Buffer.of(((bytes[at + (bit >> 3)] ?? 0) >> (bit & 7)) & 1);
  if (type.elementary?.word !== "SHORT_STRING") return bytes.subarray(at, at + count * type.elementBytes);
  return Buffer.concat(
    Array.from({ length: count }, (_, i) => {
      const start = at + i * SHORT_STRING_BYTES;
      return bytes.subarray(start, start + 1 + (bytes[start] ?? 0));
    }),
  );
}
