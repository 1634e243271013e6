import { FaultError } from "../../src/model/fault.ts";
import { type DataType, MAX_COUNT } from "../../src/model/value.ts";
import type { Discovered, DriverContext } from "../driver.ts";
import { indicesOf } from "./locate.ts";
import { type ListedSymbol, NotListed, type Page, type SymbolList } from "./symbols.ts";
import type { Templates } from "./templates.ts";
import { ATOMICS, BITS_OF_DWORD, elementaryType, type Family, isStructure, type Member, type MemberType, type Structure } from "./types.ts";

/** Structures whose members are listed behind everything else, and what is listed of members in all. */
const MAX_STRUCTURES = 20_000;
const MAX_MEMBERS = 200_000;
const MAX_PROGRAMS = 1000;
/** Routines, tasks, connections, modules and the like have one in their name. */
const PROGRAM = "Program:";

/** A structure whose members come later. */
interface Held {
  readonly address: string;
  readonly path: readonly string[];
  readonly template: number;
  readonly dimensions: readonly number[];
}

/** Lists what a controller has: its tags, those of its programs, then the members of structures. Bounded in what it keeps. */
export class Discovery {
  readonly #list: SymbolList;
  readonly #templates: Templates;
  readonly #family: Family;
  readonly #ctx: DriverContext;
  readonly #programs: string[] = [];
  readonly #held: Held[] = [];
  #done = 0;

  constructor(list: SymbolList, templates: Templates, family: Family, ctx: DriverContext) {
    this.#list = list;
    this.#templates = templates;
    this.#family = family;
    this.#ctx = ctx;
  }

  async *run(): AsyncGenerator<Discovered> {
    yield* this.#scope(undefined);
    for (const program of this.#programs) yield* this.#scope(program);
    let left = MAX_MEMBERS;
    for (const held of this.#held) {
      const structure = await this.#structureOf(held.template);
      if (!structure || structure.chars !== undefined) continue;
      for (const member of membersOf(held, structure)) {
        if (left-- <= 0) {
          this.#ctx.log.warn({ members: MAX_MEMBERS }, "the controller has more members of structures than are listed");
          return;
        }
        this.#count();
        yield member;
      }
    }
  }

  #count(): void {
    this.#done++;
    this.#ctx.progress?.(this.#done, undefined);
  }

  async *#scope(program: string | undefined): AsyncGenerator<Discovered> {
    for (let from: number | undefined = 0; from !== undefined; ) {
      const page: Page = await this.#list.page(program, from, this.#ctx).catch((error: unknown) => {
        // A program may be gone by now; a controller without a list has nothing to show.
        if (error instanceof NotListed) throw new FaultError("device_error", `the controller does not list its tags: ${error.message}`);
        throw error;
      });
      for (const symbol of page.symbols) {
        const found = await this.#symbol(symbol, program);
        if (!found) continue;
        this.#count();
        yield found;
      }
      from = page.next;
    }
  }

  async #symbol(symbol: ListedSymbol, program: string | undefined): Promise<Discovered | undefined> {
    const { name, type, dimensions } = symbol;
    if (program === undefined && name.startsWith(PROGRAM)) {
      if (this.#programs.length < MAX_PROGRAMS) this.#programs.push(name);
      return { address: name, name, type: undefined };
    }
    if (type.isSystem || name.startsWith("__") || name.includes(":")) return undefined;
    const address = program === undefined ? name : `${program}.${name}`;
    const path = program === undefined ? [] : [program];
    const structure = type.template === undefined ? undefined : await this.#structureOf(type.template);
    if (type.template !== undefined && this.#held.length < MAX_STRUCTURES && symbol.isReadable && structure?.chars === undefined)
      this.#held.push({ address, path: [...path, name], template: type.template, dimensions });
    if (!symbol.isReadable) return { address, name, type: undefined, path, comment: "External Access: None" };
    const elementary = (): MemberType => elementaryType(type.code, dimensions.length, this.#family);
    const memberType = type.template === undefined ? elementary() : structure && { structure };
    const comment = structure && structure.chars === undefined ? { comment: structure.name } : {};
    return { address, name, type: memberType && listedType(memberType, dimensions), path, ...comment };
  }

  /** Undefined: it cannot be had. */
  async #structureOf(template: number): Promise<Structure | undefined> {
    return this.#templates.get(template, this.#ctx).catch((error: unknown) => {
      if (error instanceof FaultError && error.scope === "points") return undefined;
      throw error;
    });
  }
}

/** Members of a structure or of each element of an array, and of the structures in it. */
function* membersOf(
  { address, path, dimensions }: Pick<Held, "address" | "path" | "dimensions">,
  structure: Structure,
): Generator<Discovered> {
  const elements = structure.members.some(({ isHidden }) => !isHidden) ? dimensions.reduce((so, n) => so * n, 1) : 0;
  for (let i = 0; i < elements; i++) {
    const index = dimensions.length === 0 ? "" : `[${indicesOf(i, dimensions).join(",")}]`;
    const within = index === "" ? path : [...path.slice(0, -1), `${path.at(-1)}${index}`];
    for (const member of structure.members) if (!member.isHidden) yield* oneMember(`${address}${index}`, within, member);
  }
}

function* oneMember(owner: string, path: readonly string[], { name, type, count }: Member): Generator<Discovered> {
  const address = `${owner}.${name}`;
  const dimensions = count === undefined ? [] : [count];
  const comment = isStructure(type) && type.structure.chars === undefined ? { comment: type.structure.name } : {};
  yield { address, name, type: listedType(type, dimensions), path, ...comment };
  if (isStructure(type) && type.structure.chars === undefined)
    yield* membersOf({ address, path: [...path, name], dimensions }, type.structure);
}

/** As it is read; undefined: a type that is not known, or an array that one variable cannot hold. */
function listedType(type: MemberType, dimensions: readonly number[]): DataType | undefined {
  const isBits = !isStructure(type) && type.isBits === true && dimensions.length > 0;
  const sizes = isBits ? [(dimensions[0] ?? 0) * BITS_OF_DWORD] : dimensions;
  const scalar = isStructure(type) ? "string" : isBits ? "bool" : ATOMICS.get(type.code)?.scalar;
  const count = sizes.reduce((so, n) => so * n, 1);
  if (!scalar || count < 1 || count > MAX_COUNT) return undefined;
  return { scalar, ...(sizes.length > 0 && { count }), ...(sizes.length > 1 && { dimensions: sizes }) };
}
