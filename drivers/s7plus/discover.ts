import { createYielder } from "../../src/base/timer.ts";
import { type DataType, MAX_COUNT } from "../../src/model/value.ts";
import type { Discovered, DriverContext } from "../driver.ts";
import { levelText, symbolText } from "./address.ts";
import type { Dimension, Member } from "./members.ts";
import { AREAS, type Program } from "./program.ts";
import { elementTypeOf, isStructured, isWhole, typeOfElement } from "./soft-types.ts";
import type { TypeTable } from "./symbols.ts";

/** Variables and folders that are listed at most: a bound against a CPU that invents them. */
const MAX_FOUND = 250_000;
const MAX_DEPTH = 32;

/** Something with members that was seen and not yet looked into. */
interface Pending {
  /** As it is typed. */
  readonly address: string;
  readonly path: readonly string[];
  readonly name: string;
  readonly typeId: number;
}

/**
 * All blocks and areas, then what is in them, level by level: variables with their types, structures and elements of arrays as folders. Arrays
 * that are read as one value are one variable. Throws what the look-up throws.
 */
export async function* discover(program: Program, ctx: DriverContext): AsyncGenerator<Discovered> {
  const yieldToEventLoop = createYielder();
  let [found, looked] = [0, 0];
  let level = await rootsOf(program, ctx);
  for (const { address, name } of level) yield { address, name, path: [], type: undefined };
  for (let depth = 0; level.length > 0 && depth < MAX_DEPTH; depth++) {
    const below: Pending[] = [];
    for (const [i, owner] of level.entries()) {
      const table = await program.type(owner.typeId, ctx);
      for (const { discovered, typeId } of entriesIn(owner, table)) {
        if (found++ >= MAX_FOUND) {
          ctx.log.warn({ variables: MAX_FOUND }, "the PLC has more variables than are listed; the rest was not found");
          return;
        }
        if (typeId !== undefined) below.push({ ...discovered, path: discovered.path ?? [], typeId });
        yield discovered;
        await yieldToEventLoop();
      }
      ctx.progress?.(++looked, looked + below.length + level.length - 1 - i);
    }
    level = below;
  }
}

function* entriesIn(owner: Pending, table: TypeTable | undefined): Generator<Entry> {
  for (const member of table?.values() ?? []) yield* entriesOf(owner, member);
}

/** Areas without anything in them are left out, and so are blocks that are not in working memory. */
async function rootsOf(program: Program, ctx: DriverContext): Promise<Pending[]> {
  await program.list(ctx);
  const blocks = await program.blocks(ctx);
  const typeIds = await program.typeIds([...blocks.values()], ctx);
  const roots: Pending[] = [];
  for (const { name, root } of AREAS)
    if ((await program.type(root.typeId, ctx))?.size) roots.push({ address: name, name, path: [], typeId: root.typeId });
  for (const [name, area] of blocks) {
    const typeId = typeIds.get(area);
    if (typeof typeId === "number") roots.push({ address: symbolText([name]), name, path: [], typeId });
  }
  return roots;
}

interface Entry {
  readonly discovered: Discovered;
  /** Of what is in it. */
  readonly typeId: number | undefined;
}

/** A member, or each of its elements. */
function* entriesOf(owner: Pending, member: Member): Generator<Entry> {
  const path = [...owner.path, owner.name];
  const address = `${owner.address}.${levelText(member.name)}`;
  const isFolder = isStructured(member);
  const { name, dimensions } = member;
  if (dimensions.length === 0) {
    const element = elementTypeOf(member);
    yield entry(address, name, path, isFolder ? undefined : element && typeOfElement(element), isFolder ? member.typeId : undefined);
    return;
  }
  const [first] = dimensions;
  if (isWhole(member) && first && first.count >= 1 && first.count <= MAX_COUNT) {
    const element = elementTypeOf(member);
    yield entry(address, name, path, element && typeOfElement(element, first.count), undefined);
    return;
  }
  const element = elementTypeOf(member);
  const type = isFolder ? undefined : element && typeOfElement(element);
  for (const index of indicesOf(dimensions))
    yield entry(`${address}[${index}]`, `${name}[${index}]`, path, type, isFolder ? member.typeId : undefined);
}

const entry = (address: string, name: string, path: readonly string[], type: DataType | undefined, typeId: number | undefined): Entry => ({
  discovered: { address, name, path, type },
  typeId,
});

/** `0,1`: of each element, the innermost dimension fastest. */
function* indicesOf(dimensions: readonly Dimension[], before = ""): Generator<string> {
  const [first, ...rest] = dimensions;
  if (!first) {
    yield before;
    return;
  }
  for (let i = 0; i < first.count; i++) yield* indicesOf(rest, `${before}${before === "" ? "" : ","}${first.lower + i}`);
}
