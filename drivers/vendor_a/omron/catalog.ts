import { FaultError } from "../../../src/model/fault.ts";
import type { DriverContext } from "../../driver.ts";
import type { Help } from "../../lib/silent-help.ts";
import { STATUS } from "../cip.ts";
import type { Messenger } from "../messenger.ts";
import {
  type Described,
  type DescribedType,
  parseType,
  parseVariable,
  parseVariables,
  typeRequest,
  type VariableKind,
  type VariablePage,
  variableRequest,
  variablesRequest,
} from "./objects.ts";
import { typeRefusal, variableRefusal } from "./refusals.ts";
import {
  ARRAY,
  ELEMENTARY,
  elementsOf,
  isStructureCode,
  layOut,
  type Shape,
  STRUCTURE,
  type VariableMember,
  type VariableStructure,
  valuesIn,
} from "./types.ts";

/** Variables in a page at first. */
const PAGE = 100;
const MAX_DEPTH = 16;
/** Members of one structure, types that are kept, and values in one structure. */
const MAX_MEMBERS = 4096;
const MAX_TYPES = 4096;
const MAX_VALUES = 200_000;

export const LIST: Help = {
  kind: "variables",
  words:
    "the controller gives no answer to the question for its variables: they are looked up by name, and their bounds and structures are not known",
};

export const TYPES: Help = {
  kind: "types of variables",
  words:
    "the controller gives no answer to the question for the types of its variables: they are looked up by name, and their bounds and structures are not known",
};

/** The controller has no list of variables for us. */
export class NotListed extends Error {}

/** The controller's list of variables and their types. No public document describes it: a refusal only costs its help. */
export class Catalog {
  readonly #messenger: Messenger;
  readonly #structures = new Map<number, VariableStructure>();
  /** The oldest structure may be known since then, monotonic ms. */
  #sinceMs = performance.now();
  #pageSize = PAGE;
  /** A question for a type that had no answer. */
  #silent: Buffer = variableRequest(1);
  #refused: string | undefined;

  constructor(messenger: Messenger) {
    this.#messenger = messenger;
  }

  /** Why the controller refuses its list; undefined: it does not. */
  get refused(): string | undefined {
    return this.#refused;
  }

  /** Why there is no list at this moment; undefined: there is one. */
  get lacking(): string | undefined {
    return this.#refused ?? (this.#messenger.isSilent(LIST.kind) ? "it does not answer" : undefined);
  }

  /** The controller has another program. */
  forget(): void {
    this.#structures.clear();
    this.#sinceMs = performance.now();
  }

  /** Types that are known for longer may be those of another program. */
  forgetOld(ms: number): void {
    if (performance.now() - this.#sinceMs >= ms) this.forget();
  }

  /** Variables by their places from 1 on. Throws NotListed; ReasonError. */
  async page(from: number, kind: VariableKind, ctx: DriverContext): Promise<VariablePage> {
    for (;;) {
      if (this.#refused !== undefined) throw new NotListed(this.#refused);
      const page = await this.#ask(LIST, variablesRequest(from, this.#pageSize, kind), "the list of variables", parseVariables, ctx);
      if (page === undefined) throw new NotListed("it does not answer");
      if (page === "too large" && this.#pageSize > 1) this.#pageSize = Math.ceil(this.#pageSize / 2);
      else if (page instanceof FaultError && page.scope !== "points") throw page;
      else if (page === "too large" || page instanceof FaultError)
        this.#refused = page === "too large" ? "an answer has no room for it" : page.message;
      else return page;
    }
  }

  /** Asks again for a type that had no answer. Throws ReasonError. */
  async typeAgain(ctx: DriverContext): Promise<void> {
    await this.#ask(TYPES, this.#silent, "the type of a variable", () => true, ctx);
  }

  /** The shape of a listed variable. Throws FaultError: it cannot be had. */
  async shapeOf(instance: number, name: string, ctx: DriverContext): Promise<Shape> {
    const variable = await this.#described(variableRequest(instance), `the type of ${name}`, parseVariable, ctx);
    return this.#shape(variable, variable.type, name, ctx, 0);
  }

  async #shape(described: Described, type: number, name: string, ctx: DriverContext, depth: number): Promise<Shape> {
    const { dimensions, firsts } = described;
    const isArray = described.code === ARRAY || dimensions.length > 0;
    const code = described.code === ARRAY ? described.elementCode : described.code;
    // A text is as long as it is declared.
    const bytes = ELEMENTARY.get(code)?.bytes || Math.floor(described.bytes / Math.max(1, elementsOf(described)));
    const shape: Shape = { code, bytes, dimensions, firsts };
    if (isArray && dimensions.length === 0) throw unusable(name, "an array without dimensions");
    if (!isStructureCode(code)) return shape;
    const structure = type === 0 ? undefined : await this.#structure(type, name, ctx, depth);
    return { ...shape, code: STRUCTURE, ...(structure && { structure, bytes: structure.bytes }) };
  }

  /** `instance`: of a structure's type, or of a member or an array that has it. */
  async #structure(instance: number, name: string, ctx: DriverContext, depth: number): Promise<VariableStructure> {
    if (depth >= MAX_DEPTH) throw unusable(name, `structures are nested more than ${MAX_DEPTH} deep`);
    const known = this.#structures.get(instance);
    if (known) return known;
    const type = await this.#described(typeRequest(instance), `type ${instance} in ${name}`, parseType, ctx);
    // A member of a structure type, or an array of it, has no members of its own and leads to the type.
    const structure =
      type.members === 0 && type.nested !== 0
        ? await this.#structure(type.nested, name, ctx, depth + 1)
        : await this.#withMembers(type, name, ctx, depth);
    if (structure.members.length === 0) throw unusable(name, "a structure without members");
    if (this.#structures.size < MAX_TYPES) this.#structures.set(instance, structure);
    return structure;
  }

  async #withMembers(type: DescribedType, name: string, ctx: DriverContext, depth: number): Promise<VariableStructure> {
    const members: Pick<VariableMember, "name" | "shape">[] = [];
    const seen = new Set<number>();
    for (let next = type.nested; next !== 0; ) {
      if (seen.has(next) || seen.size >= MAX_MEMBERS) throw unusable(name, `the members of ${type.name} have no end`);
      seen.add(next);
      const member = await this.#described(typeRequest(next), `type ${next} in ${name}`, parseType, ctx);
      members.push({ name: member.name, shape: await this.#shape(member, member.nested, name, ctx, depth + 1) });
      next = member.next;
    }
    // A member may say the number of its type's members: what was walked is the type, and not a member of it.
    if (members.length !== type.members && type.nested !== 0 && members.length === 1)
      return this.#structure(type.nested, name, ctx, depth + 1);
    if (members.length !== type.members) throw unusable(name, `${type.name} has ${members.length} members and says ${type.members}`);
    const structure = { name: type.name, crc: type.crc, bytes: type.bytes, members: layOut(members, type.bytes) };
    if (valuesIn(structure) > MAX_VALUES) throw unusable(name, `${type.name} has more than ${MAX_VALUES} values`);
    return structure;
  }

  async #described<T>(request: Buffer, what: string, parse: Parse<T>, ctx: DriverContext): Promise<T> {
    const found = await this.#ask(TYPES, request, what, parse, ctx);
    if (found === undefined) {
      this.#silent = request;
      throw unusable(what, "the controller gives no answer; members can be read by name");
    }
    if (found === "too large") throw unusable(what, "an answer has no room for it");
    if (found instanceof FaultError) throw found;
    return found;
  }

  /** Undefined: it gives no answer. */
  #ask<T>(
    help: Help,
    request: Buffer,
    what: string,
    parse: Parse<T>,
    ctx: DriverContext,
  ): Promise<T | "too large" | FaultError | undefined> {
    return this.#messenger.askHelp<T | "too large" | FaultError>(
      help,
      ctx,
      () => what,
      request,
      ({ status, extended, bytes, at, end }, done) => {
        if (status === STATUS.tooLarge) {
          done("too large");
          return undefined;
        }
        const refused = help === TYPES ? typeRefusal : variableRefusal;
        const found = status === STATUS.ok ? parse(bytes, at, end) : refused(status, extended, what);
        done(typeof found === "string" ? unusable(what, found) : found);
        return undefined;
      },
    );
  }
}

type Parse<T> = (bytes: Buffer, at: number, end: number) => T | string;

const unusable = (what: string, why: string): FaultError => new FaultError("device_error", `${what}: ${why}`);
