import { MAX_OF_TAG, tooMany } from "./bounds.ts";
import type { TagEntry, TagListFormat, Wanted } from "./format.ts";
import { L5xReader, type LogixMember, type LogixProject, type LogixTag, type LogixType } from "./l5x-read.ts";
import { piecesOf, readXml } from "./xml.ts";

/** Tags of a Logix controller with the members of their structures, as Studio 5000 exports a project or a part of it (L5X). */
export const l5x: TagListFormat = {
  program: "Studio 5000",
  what: "project (L5X)",
  read: (file, wanted) => (file.text.slice(0, HEAD).includes("<RSLogix5000Content") ? entries(file.text, wanted) : undefined),
};

/** Characters in which the first element is. */
const HEAD = 8192;

async function* entries(text: string, { type }: Wanted): AsyncGenerator<TagEntry> {
  if (type !== "vendor_a") {
    yield { refusal: `holds tags of a Logix controller, which data sources of the type vendor_a read, not ${type}` };
    return;
  }
  const reader = new L5xReader();
  const fault = await readXml(piecesOf(text), reader);
  if (fault) {
    yield { refusal: fault.fault };
    return;
  }
  const { project } = reader;
  const expansion = new Expansion(project);
  if (project.tags.length === 0) yield { refusal: "declares no tags; export the controller, or a program with its tags" };
  for (const tag of project.tags) yield* expansion.entriesOf(tag);
  if (project.isCut)
    yield { place: "the end of the file", problem: "the file has more tags and members than are read; export programs one by one" };
}

/** Names of types in Studio 5000 that are one value. */
const ATOMS = new Set([
  ...["BOOL", "BIT", "SINT", "INT", "DINT", "LINT", "USINT", "UINT", "UDINT", "ULINT", "REAL", "LREAL", "BYTE", "WORD", "DWORD", "LWORD"],
  ...["STRING", "TIME", "TIME32", "LTIME", "DT", "LDT"],
]);

const member = (type: string, ...names: readonly string[]): readonly LogixMember[] =>
  names.map((name) => ({ name, type, dimensions: [], closed: undefined }));

/** Structures that every controller has, whose members no file declares (Rockwell 1756-RM003). */
const PREDEFINED: ReadonlyMap<string, LogixType> = new Map(
  Object.entries({
    TIMER: [...member("DINT", "PRE", "ACC"), ...member("BOOL", "EN", "TT", "DN")],
    COUNTER: [...member("DINT", "PRE", "ACC"), ...member("BOOL", "CU", "CD", "DN", "OV", "UN")],
    CONTROL: [...member("DINT", "LEN", "POS"), ...member("BOOL", "EN", "EU", "DN", "EM", "ER", "UL", "IN", "FD")],
  }).map(([name, members]) => [name, { isString: false, members }]),
);

/** Elements of one variable at most. */
const MAX_ELEMENTS = 65_535;
/** Steps of an address at most. */
const MAX_NESTING = 30;
const MAX_ALIASES = 16;

const NO_MEMBERS = "its structure shows no members in this file; collector browse lists those that can be read";

/** A place in the controller: what is declared there, and how it is written. */
interface Target {
  readonly address: string;
  /** Undefined: the file does not say what is there. */
  readonly type: string | undefined;
  readonly dimensions: readonly number[];
  readonly closed: string | undefined;
}

/** Makes variables of tags: structures by their members, arrays of structures by their elements, other arrays as one. */
class Expansion {
  readonly #types: ReadonlyMap<string, LogixType>;
  readonly #byName = new Map<string, LogixTag>();
  readonly #counts = new Map<string, number>();
  readonly #open = new Set<string>();

  constructor({ types, tags }: LogixProject) {
    this.#types = types;
    for (const tag of tags) this.#byName.set(keyOf(tag.program, tag.name), tag);
  }

  *entriesOf(tag: LogixTag): Generator<TagEntry> {
    const name = tag.program === undefined ? tag.name : `${tag.program}.${tag.name}`;
    const target = tag.closed ?? (tag.aliasFor === undefined ? placeOf(tag) : this.#aliased(tag.aliasFor, tag.program, 0));
    const problem = typeof target === "string" ? target : target.closed;
    if (typeof target === "string" || problem !== undefined) {
      yield { place: tag.line, name, problem: problem ?? "" };
      return;
    }
    const count = this.#countOf(target.type, target.dimensions);
    if (!(count <= MAX_OF_TAG)) yield { place: tag.line, name, problem: tooMany(count) };
    else if (count === 0) yield { place: tag.line, name, problem: NO_MEMBERS };
    else yield* this.#expand(target, name, tag.comment, tag.line);
  }

  *#expand({ address, type, dimensions, closed }: Target, name: string, comment: string | undefined, line: number): Generator<TagEntry> {
    const say = (problem: string): TagEntry => ({ place: line, name, problem });
    const structure = this.#structureOf(type);
    if (closed !== undefined) yield say(closed);
    else if (structure && !structure.isString) {
      for (const element of indicesOf(dimensions))
        for (const inner of structure.members) {
          const at = { ...inner, address: `${address}${element}.${inner.name}` };
          yield* this.#expand(at, `${name}${element}.${inner.name}`, inner.comment, line);
        }
    } else if (!structure && type !== undefined && !ATOMS.has(type.toUpperCase()))
      yield say(`the structure ${JSON.stringify(type)} is not in this file; collector browse lists its members, which are variables`);
    else if (elementsOf(dimensions) > MAX_ELEMENTS)
      yield say(`it has ${elementsOf(dimensions)} elements, one variable at most ${MAX_ELEMENTS}; add a part, for example Tag[0]{1000}`);
    else yield { place: line, tag: { name, address, ...(comment?.trim() && { comment: comment.trim() }) } };
  }

  /** Follows an alias to a tag, also by way of other aliases; or says why that is not possible. */
  #aliased(path: string, program: string | undefined, turns: number): Target | string {
    const [, root = "", rest = ""] = /^([^.[\]]+)(.*)$/.exec(path) ?? [];
    const tag = this.#byName.get(keyOf(program, root)) ?? this.#byName.get(keyOf(undefined, root));
    // Tags of modules are not listed.
    if (!tag) return { address: path, type: undefined, dimensions: [], closed: undefined };
    if (tag.closed !== undefined) return tag.closed;
    if (turns > MAX_ALIASES) return "it is an alias of an alias without an end";
    const base = tag.aliasFor === undefined ? placeOf(tag) : this.#aliased(tag.aliasFor, tag.program, turns + 1);
    return typeof base === "string" ? base : this.#within(base, rest);
  }

  /** The place behind `.Member[3].5`. */
  #within(base: Target, rest: string): Target | string {
    let at: Target = base;
    for (const [step, name, indices] of rest.matchAll(/\.([^.[\]]+)|\[([^\]]*)\]/g)) {
      const address = at.address + step;
      if (indices !== undefined) at = { ...at, address, dimensions: [] };
      else if (/^\d+$/.test(name ?? "")) at = { address, type: "BOOL", dimensions: [], closed: at.closed };
      else {
        const structure = this.#structureOf(at.type);
        const found = structure?.members.find((one) => one.name.toLowerCase() === name?.toLowerCase());
        if (structure && !found) return "it is an alias of a member that its structure does not have";
        at = { type: found?.type, dimensions: found?.dimensions ?? [], closed: at.closed ?? found?.closed, address };
      }
    }
    return at;
  }

  #structureOf(type: string | undefined): LogixType | undefined {
    const key = type?.toUpperCase() ?? "";
    return this.#types.get(key) ?? PREDEFINED.get(key);
  }

  /** Variables that a value of this type becomes; Infinity: its types contain themselves or lie too deep. */
  #countOf(type: string | undefined, dimensions: readonly number[]): number {
    const structure = this.#structureOf(type);
    if (!structure || structure.isString || type === undefined) return 1;
    return this.#countOfStructure(type.toUpperCase(), structure) * elementsOf(dimensions);
  }

  #countOfStructure(key: string, { members }: LogixType): number {
    const known = this.#counts.get(key);
    if (known !== undefined) return known;
    if (this.#open.has(key) || this.#open.size > MAX_NESTING) return Number.POSITIVE_INFINITY;
    this.#open.add(key);
    const count = members.reduce((sum, { type, dimensions }) => sum + this.#countOf(type, dimensions), 0);
    this.#open.delete(key);
    this.#counts.set(key, count);
    return count;
  }
}

const keyOf = (program: string | undefined, name: string): string => `${program ?? ""}\n${name}`.toLowerCase();

const placeOf = ({ program, name, type, dimensions, closed }: LogixTag): Target => ({
  address: program === undefined ? name : `Program:${program}.${name}`,
  type,
  dimensions,
  closed,
});

const elementsOf = (dimensions: readonly number[]): number => dimensions.reduce((product, size) => product * size, 1);

/** `[0,0]`, `[0,1]`, …; without dimensions an empty text once. */
function* indicesOf(dimensions: readonly number[]): Generator<string> {
  if (dimensions.length === 0) yield "";
  else for (let i = 0; i < elementsOf(dimensions); i++) yield `[${indexAt(i, dimensions).join(",")}]`;
}

/** The last index changes first. */
function indexAt(at: number, dimensions: readonly number[]): readonly number[] {
  let rest = at;
  return dimensions
    .toReversed()
    .map((size) => {
      const index = rest % size;
      rest = Math.floor(rest / size);
      return index;
    })
    .toReversed();
}
