import type { Attributes, XmlHandler } from "./xml.ts";

/** A member of a structure, a parameter or a local tag of an Add-On Instruction. */
export interface LogixMember {
  readonly name: string;
  /** Undefined: the file does not say. */
  readonly type: string | undefined;
  /** Elements by dimension; empty: no array. */
  readonly dimensions: readonly number[];
  readonly comment?: string;
  /** Why it cannot be read; undefined: it can. */
  readonly closed: string | undefined;
}

export interface LogixTag extends LogixMember {
  /** From 1. */
  readonly line: number;
  /** Undefined: a tag of the controller. */
  readonly program: string | undefined;
  /** Target of an alias, as it is written in its scope. */
  readonly aliasFor: string | undefined;
}

export interface LogixType {
  /** A text: LEN and DATA are one value. */
  readonly isString: boolean;
  readonly members: readonly LogixMember[];
}

/** Declarations of a controller's export. Names of types are in upper case: Logix does not tell them apart. */
export interface LogixProject {
  readonly types: ReadonlyMap<string, LogixType>;
  readonly tags: readonly LogixTag[];
  /** The file has more tags or members than are kept. */
  readonly isCut: boolean;
}

/** Tags, and members of types, that are kept of one file. */
const MAX_KEPT = 300_000;

const CLOSED = "External Access in the controller: None. It cannot be read";
const IN_OUT = "an InOut parameter stands for another tag, which is a variable itself";

/** Dimensions of an array in Logix at most. */
const MAX_DIMENSIONS = 3;

/** Hosts of packed BOOL begin so. */
const HOST = "ZZZZZZZZZZ";

/** A text, or texts by language: `<Description><LocalizedDescription Lang="en-US">`. */
const DESCRIPTIONS = new Set(["Description", "LocalizedDescription"]);
const DESCRIBED = new Set(["Tag", "Member", "Parameter", "LocalTag"]);

type Made = { -readonly [K in keyof LogixMember]: LogixMember[K] } & Partial<Pick<LogixTag, "line" | "program" | "aliasFor">>;

/** Gathers tags and types of an L5X file. Elements by their way from the root, such as `Controller/Programs/Program/Tags/Tag`. */
export class L5xReader implements XmlHandler {
  readonly #way: string[] = [];
  readonly #types = new Map<string, { isString: boolean; members: Made[] }>();
  readonly #tags: (Made & { line: number })[] = [];
  #kept = 0;
  #isCut = false;
  #program: string | undefined;
  #type: { isString: boolean; members: Made[] } | undefined;
  /** The tag or member whose description comes next. */
  #described: Made | undefined;
  #isDescription = false;

  get project(): LogixProject {
    const tags = this.#tags.map((tag): LogixTag => ({ program: undefined, aliasFor: undefined, ...tag }));
    return { types: this.#types, tags, isCut: this.#isCut };
  }

  open(name: string, attributes: Attributes, line: number): "stop" | undefined {
    this.#way.push(name);
    if (this.#way[0] !== "RSLogix5000Content" || this.#way[1] !== "Controller") return undefined;
    const way = this.#way.slice(2).join("/");
    if (way === "Programs/Program") this.#program = attributes.get("Name");
    else if (way === "Tags/Tag" || way === "Programs/Program/Tags/Tag") this.#tag(attributes, line);
    else if (way === "DataTypes/DataType" || /^AddOnInstructionDefinitions\/[^/]+$/.test(way)) this.#declare(attributes);
    else if (way === "DataTypes/DataType/Members/Member") this.#member(attributes);
    else if (/^AddOnInstructionDefinitions\/[^/]+\/(Parameters\/Parameter|LocalTags\/LocalTag)$/.test(way)) this.#member(attributes);
    else if (DESCRIPTIONS.has(name)) this.#describe();
    if (this.#kept <= MAX_KEPT) return undefined;
    this.#isCut = true;
    return "stop";
  }

  text(part: string): void {
    if (!this.#isDescription || !this.#described) return;
    const comment = (this.#described.comment ?? "") + part;
    this.#described.comment = comment.slice(0, 4000);
  }

  close(name: string): void {
    const way = this.#way.slice(2).join("/");
    this.#way.pop();
    if (way === "Programs/Program") this.#program = undefined;
    if (DESCRIPTIONS.has(name)) this.#isDescription = false;
    else if (DESCRIBED.has(name)) this.#described = undefined;
  }

  /** Takes the text that follows, unless there is one in another language. */
  #describe(): void {
    if (!this.#described || (this.#described.comment ?? "").trim() !== "") return;
    this.#described.comment = "";
    this.#isDescription = true;
  }

  #tag(attributes: Attributes, line: number): void {
    const aliasFor = attributes.get("AliasFor");
    const tag = { ...memberOf(attributes, attributes.get("Dimensions")), line, program: this.#program, aliasFor };
    this.#keep(tag);
    this.#tags.push(tag);
  }

  #declare(attributes: Attributes): void {
    this.#type = { isString: attributes.get("Family") === "StringFamily", members: [] };
    this.#types.set((attributes.get("Name") ?? "").toUpperCase(), this.#type);
  }

  #member(attributes: Attributes): void {
    if (attributes.get("Hidden") === "true" || attributes.get("Name")?.startsWith(HOST)) return;
    const member = memberOf(attributes, attributes.get("Dimension") ?? attributes.get("Dimensions"));
    this.#keep(member);
    this.#type?.members.push(member);
  }

  #keep(made: Made): void {
    this.#kept++;
    this.#described = made;
  }
}

function memberOf(attributes: Attributes, dimensions: string | undefined): Made {
  const sizes = (dimensions ?? "")
    .split(/[\s,]+/)
    .filter((size) => size !== "")
    .map(Number);
  const isClear = sizes.length <= MAX_DIMENSIONS && sizes.every((size) => Number.isInteger(size) && size >= 0 && size < 2 ** 31);
  const closed = attributes.get("ExternalAccess") === "None" ? CLOSED : attributes.get("Usage") === "InOut" ? IN_OUT : undefined;
  return {
    name: attributes.get("Name") ?? "",
    type: attributes.get("DataType"),
    dimensions: isClear ? sizes.filter((size) => size > 0) : [],
    closed: closed ?? (isClear ? undefined : `its dimensions ${JSON.stringify(dimensions)} are not up to three whole numbers`),
  };
}
