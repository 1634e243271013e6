import { doubleWord, word } from "./simulator-frames.ts";
import { bytesOfType, type CipType, type Member, parseType, STRUCTURE_CODE, type Template } from "./simulator-types.ts";

/** Templates of a Logix controller: how members are laid out, and how class 6C tells of them (1756-PM020, chapter 2). */

const TEMPLATE_BIT = 0x8000;
const DIMENSION_SHIFT = 13;
/** Names of hosts of packed BOOLs in types that people make. */
const HIDDEN = "ZZZZZZZZZZ";
const [STRING_HANDLE, STRING_CHARACTERS] = [0x0fce, 82];
/** What the definition size counts beyond the definition itself. */
const DEFINITION_EXTRA_BYTES = 23;

const alignUp = (at: number, by: number): number => Math.ceil(at / by) * by;

/** LINT and LREAL begin on 8 bytes, structures and arrays on 4 at least, everything else on its own size. */
function alignmentOf(type: CipType): number {
  const widest = type.template ? Math.max(4, ...type.template.members.map((member) => alignmentOf(member.type))) : type.elementBytes;
  return type.dimensions.length > 0 ? Math.max(4, widest) : widest;
}

interface Built {
  readonly members: readonly Member[];
  readonly bytes: number;
}

/** Members one behind the other; eight BOOLs in a row share a hidden SINT. */
function layOut(typeName: string, members: readonly (readonly [name: string, type: CipType])[], sint: CipType): Built {
  const laid: Member[] = [];
  let at = 0;
  let bit = 8;
  for (const [name, type] of members) {
    if (type.elementary?.word === "BOOL") {
      if (bit === 8) {
        bit = 0;
        laid.push({ name: `${HIDDEN}${typeName.slice(0, 10)}${laid.length}`, type: sint, offset: at, bit: 0, isHidden: true });
        at++;
      }
      laid.push({ name, type, offset: at - 1, bit: bit++, isHidden: false });
      continue;
    }
    bit = 8;
    at = alignUp(at, alignmentOf(type));
    laid.push({ name, type, offset: at, bit: 0, isHidden: false });
    at += bytesOfType(type);
  }
  const widest = Math.max(4, ...laid.map(({ type }) => alignmentOf(type)));
  return { members: laid, bytes: alignUp(at, widest) };
}

/** Sixteen bits that change with what the structure is made of. */
function handleOf(name: string, members: readonly Member[]): number {
  let hash = 0x811c;
  for (const character of `${name}${members.map((member) => `${member.name}${symbolTypeOf(member.type)}@${member.offset}`)}`)
    hash = ((hash ^ character.charCodeAt(0)) * 0x0193) & 0xffff;
  return hash;
}

/** The type word of a symbol or a member. */
export function symbolTypeOf({ elementary, template, dimensions }: CipType): number {
  return (template ? TEMPLATE_BIT | template.instance : (elementary?.code ?? 0)) | (dimensions.length << DIMENSION_SHIFT);
}

/** What comes before a value: a type code, of structures with their handle. */
export const typeHeaderOf = ({ elementary, template }: CipType): Buffer =>
  template ? Buffer.concat([word(STRUCTURE_CODE), word(template.handle)]) : word(elementary?.code ?? 0);

/** The structure types of a program, by name in upper case. */
export class Templates {
  readonly byName = new Map<string, Template>();
  readonly byInstance = new Map<number, Template>();
  readonly #atomic = (text: string): CipType => parseType(text, this.byName);

  constructor() {
    const dint = this.#atomic("DINT");
    const bool = this.#atomic("BOOL");
    const hidden = (name: string, type: CipType): Member => ({ name, type, offset: 0, bit: 0, isHidden: true });
    const member = (name: string, type: CipType, offset: number, bit = 0): Member => ({ name, type, offset, bit, isHidden: false });
    const counts = [member("PRE", dint, 4), member("ACC", dint, 8)];
    this.#add({
      name: "TIMER",
      instance: 0xf83,
      handle: 0x0f83,
      bytes: 12,
      members: [hidden("CTL", dint), ...counts, ...["EN", "TT", "DN"].map((name, i) => member(name, bool, 3, 7 - i))],
      isPredefined: true,
    });
    this.#add({
      name: "COUNTER",
      instance: 0xf82,
      handle: 0x0f82,
      bytes: 12,
      members: [hidden("CTL", dint), ...counts, ...["CU", "CD", "DN", "OV", "UN"].map((name, i) => member(name, bool, 3, 7 - i))],
      isPredefined: true,
    });
    const data = this.#atomic(`SINT[${STRING_CHARACTERS}]`);
    this.#add({
      name: "ASCIISTRING82",
      instance: STRING_HANDLE,
      handle: STRING_HANDLE,
      bytes: 88,
      members: [member("LEN", dint, 0), member("DATA", data, 4)],
      isPredefined: true,
    });
    const [string] = [this.byName.get("ASCIISTRING82")];
    if (string) this.byName.set("STRING", string);
  }

  #add(template: Template): Template {
    this.byName.set(template.name.toUpperCase(), template);
    this.byInstance.set(template.instance, template);
    return template;
  }

  /** Makes a structure type. Throws RangeError for a member of a type that there is not. */
  structure(name: string, instance: number, members: readonly (readonly [name: string, type: string])[]): Template {
    const laid = layOut(
      name,
      members.map(([member, type]) => [member, parseType(type, this.byName)]),
      this.#atomic("SINT"),
    );
    return this.#add({ name, instance, handle: handleOf(name, laid.members), ...laid, isPredefined: false });
  }

  /** Gives every type that people made another instance, as a download may. */
  renumber(by: number): void {
    const old = [...this.byInstance.values()];
    this.byInstance.clear();
    // Types keep their identity for tags and members: only what others see changes.
    for (const template of old) {
      if (!template.isPredefined) Object.assign(template, { instance: ((template.instance + by) % 0xe00) + 0x100 });
      this.byInstance.set(template.instance, template);
    }
  }
}

/** Attributes 1, 2, 4 and 5 of class 6C; undefined: it has no such attribute. */
export function templateAttribute(template: Template, attribute: number): Buffer | undefined {
  if (attribute === 1) return word(template.handle);
  if (attribute === 2) return word(template.members.length);
  if (attribute === 4) return doubleWord(Math.ceil((definitionOf(template).length + DEFINITION_EXTRA_BYTES) / 4));
  if (attribute === 5) return doubleWord(template.bytes);
  return undefined;
}

/** Members' words, then names: the type's, and each member's. */
export function definitionOf({ name, members, isPredefined }: Template): Buffer {
  const words = members.map(({ type, offset, bit }) => {
    const [count = 0] = type.dimensions;
    const info = type.elementary?.word === "BOOL" ? bit : count;
    return Buffer.concat([word(info), word(symbolTypeOf(type)), doubleWord(offset)]);
  });
  const tail = isPredefined ? "" : `;n${"EC".repeat(members.length)}`;
  const names = [`${name}${tail}`, ...members.map((member) => member.name)].map((text) => Buffer.from(`${text}\0`, "latin1"));
  return Buffer.concat([...words, ...names]);
}
