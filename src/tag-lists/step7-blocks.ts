import type { Cells } from "../configuration/variable-file.ts";
import { MAX_OF_TAG, tooMany } from "./bounds.ts";
import type { TagEntry, TagListFormat, Wanted } from "./format.ts";
import { bitsOf, isOpaque, Layout, type Missing, type Place, type Step } from "./step7-layout.ts";
import { type Block, parseStep7Source, type Source } from "./step7-source.ts";

/** Data blocks as TIA Portal and STEP 7 generate them as sources (`.db`, `.scl`, `.awl`): offsets for s7, symbols for s7plus. */
export const step7Blocks: TagListFormat = {
  program: "TIA Portal",
  what: "data blocks (source)",
  read(file, wanted) {
    const source = LOOKS_SO.test(file.text) ? parseStep7Source(file.text) : undefined;
    return source && entries(source, wanted);
  },
};

/** Remarks may come first. */
const LOOKS_SO = /(?:^|\s)(?:DATA_BLOCK|TYPE)\s+(?:"|[\p{L}_])/iu;

function* entries(source: Source, wanted: Wanted): Generator<TagEntry> {
  const { type } = wanted;
  if (type !== "s7" && type !== "s7plus") {
    yield { refusal: `holds data blocks of a SIMATIC S7, which data sources of the types s7 and s7plus read, not ${type}` };
    return;
  }
  if (source.cut) {
    yield { place: source.cut.line, refusal: source.cut.message };
    return;
  }
  for (const { line, message } of source.problems) yield { place: line, problem: message };
  if (source.blocks.length + source.problems.length === 0)
    yield { refusal: "declares no data block; export the block itself, with the PLC data types that it uses" };
  for (const name of wanted.blockNumbers?.keys() ?? [])
    if (name !== "" && !source.blocks.some((block) => block.name === name))
      yield { note: `--db: the file has no data block ${JSON.stringify(name)}` };
  const layout = new Layout(source.types, type === "s7" ? isRow : isPlusArray);
  for (const block of source.blocks) yield* blockEntries(block, layout, type, numberOf(block, source, wanted));
}

/** The number of a block: as a person has named it, or of the source itself. */
function numberOf({ name, number }: Block, { blocks }: Source, { blockNumbers }: Wanted): number | undefined {
  return blockNumbers?.get(name) ?? (blocks.length === 1 ? blockNumbers?.get("") : undefined) ?? number;
}

function* blockEntries(block: Block, layout: Layout, type: "s7" | "s7plus", number: number | undefined): Generator<TagEntry> {
  const { name, line } = block;
  const say = (problem: string): TagEntry => ({ place: line, name, problem });
  const isAbsolute = type === "s7";
  if (isAbsolute && block.isOptimized) {
    yield say(
      "the block has optimised access, and so no offsets: read it with a data source of the type s7plus, or switch optimised block access off for it (properties of the block, Attributes) and export it again",
    );
    return;
  }
  if (isAbsolute && number === undefined) {
    yield say(
      `the file does not say the number of the data block: name it with --db 12, or --db ${JSON.stringify(`${name}=12`)} where there are several`,
    );
    return;
  }
  const members = layout.membersOf(block.body);
  if (!members) {
    const of = block.body.kind === "named" || block.body.kind === "plain" ? nameOf(block.body) : "";
    yield say(`the block is of the type ${JSON.stringify(of)}, which is not in this file; export it with the block`);
    return;
  }
  let at: number | undefined = isAbsolute ? 0 : undefined;
  for (const member of members) {
    const path = [name, member.name];
    const count = layout.countOf(member.type);
    if (!(count <= MAX_OF_TAG)) yield { place: member.line, name: textOf(path), problem: tooMany(count) };
    // Elements without members are not walked through.
    else if (count > 0) for (const place of layout.places(member, path, at)) yield entryOf(place, number);
    const known: boolean = at !== undefined;
    at = layout.behind(member.type, at);
    if (known && at === undefined && member !== members.at(-1))
      yield { place: member.line, name, problem: "what follows in the block has no known place, because a type before it is not known" };
  }

  function entryOf(place: Place | Missing, of: number | undefined): TagEntry {
    const from = { place: place.member.line, name: textOf(place.path) };
    if ("missing" in place)
      return { ...from, problem: `the type ${JSON.stringify(place.missing)} is not in this file; export it with the block` };
    if (isOpaque(place.word)) return { ...from, problem: `a ${place.word} is not read; name its members with collector variables add` };
    if (place.length === 0) return { ...from, problem: "a string without room for characters holds no text" };
    if (!isAbsolute && !place.member.isAccessible)
      return { ...from, problem: "it is not accessible from HMI/OPC UA: switch that on in the block's declaration" };
    const cells = isAbsolute ? absolute(place, of) : { address: symbolOf(place.path) };
    if (!cells) return { ...from, problem: "it has no known place, because a type before it is not known" };
    const { comment } = place.member;
    return { place: place.member.line, tag: { name: from.name, ...cells, ...(comment !== undefined && { comment }) } };
  }
}

const nameOf = (type: { readonly kind: "named"; readonly name: string } | { readonly kind: "plain"; readonly word: string }): string =>
  type.kind === "named" ? type.name : type.word;

/** `DB12.DBW4` with its type; undefined: its place is unknown. */
function absolute({ at, word, length, count }: Place, block: number | undefined): Pick<Cells, "address" | "type"> | undefined {
  if (at === undefined || block === undefined) return undefined;
  // Shifts would wrap at 2^31 bits.
  const byte = Math.floor(at / 8);
  const bits = bitsOf(word, length) ?? 0;
  const isText = word === "STRING" || word === "WSTRING";
  const width = isText || bits === 8 ? "B" : bits === 16 ? "W" : "D";
  const where = bits === 1 ? `X${byte}.${at % 8}` : `${width}${byte}`;
  const chars = isText && length !== undefined ? `(${length})` : "";
  return { address: `DB${block}.DB${where}`, type: `${word}${chars}${count === undefined ? "" : `[${count}]`}` };
}

/** Rows of any type are read as one value over S7. */
const isRow = (word: string): boolean => !isOpaque(word);

/** Numbers, bits and characters with one dimension are read as one value over S7plus. */
const isPlusArray = (word: string, dimensions: number): boolean =>
  dimensions === 1 && /^(BOOL|BYTE|L?REAL|[DL]?WORD|U?[SDL]?INT|W?CHAR)$/.test(word);

/** `Block.motor[2].speed`. */
const textOf = (path: readonly Step[]): string => joined(path, (name) => name);

/** `"Block".motor[2]."at end"`; quotes around the first keep it from an access string. */
const symbolOf = (path: readonly Step[]): string =>
  joined(path, (name, i) => (i > 0 && /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) ? name : `"${name.replaceAll('"', '""')}"`));

const joined = (path: readonly Step[], level: (name: string, i: number) => string): string =>
  path.map((step, i) => (typeof step === "string" ? `${i === 0 ? "" : "."}${level(step, i)}` : `[${step.join(",")}]`)).join("");
