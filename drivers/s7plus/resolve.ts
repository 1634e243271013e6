import { createYielder, inSlices } from "../../src/base/timer.ts";
import { FaultError } from "../../src/model/fault.ts";
import type { DriverContext, Point, Prepared } from "../driver.ts";
import { groupTextSteps } from "../lib/group.ts";
import { type Level, levelText, otherMeaning, type PlusAddress } from "./address.ts";
import { AREAS, type Program, type TypeId } from "./program.ts";
import { locate, nearWords, type Root, SymbolFault } from "./symbols.ts";

/** A symbol that is not there is looked for again after this long: not every change of a program is noticed. */
const AGAIN_MS = 300_000;
/** A block whose type the CPU does not tell is asked for again after this: a CPU that is short of resources for a moment has them again. */
const REFUSED_AGAIN_MS = 1000;
/** Points in one batch. */
const BATCH = 250;

/**
 * The place where each point is in the CPU's present program. Ends between two requests when the signal aborts. Throws as `Session.read` does.
 */
export async function* resolvePoints(
  points: readonly Point<PlusAddress>[],
  program: Program,
  checksNames: boolean,
  ctx: DriverContext,
): AsyncGenerator<readonly Prepared<PlusAddress>[]> {
  const raw = points.filter(({ address }) => !address.levels);
  const yieldToEventLoop = createYielder();
  for (let at = 0; at < raw.length; at += BATCH) {
    yield raw.slice(at, at + BATCH).map((point) => ({ point, address: point.address, type: point.type }));
    await yieldToEventLoop();
  }
  if (raw.length === points.length) return;
  const symbols = points.filter(({ address }) => address.levels);
  const byRoot = await inSlices(groupTextSteps(symbols, rootNameOf), yieldToEventLoop);
  const blocks = await program.blocks(ctx);
  const types = await program.typeIds(
    byRoot.flatMap(([first]) => (first && blocks.get(rootNameOf(first))) ?? []),
    ctx,
  );
  const resolver = new Resolver(program, blocks, types, checksNames, ctx);
  for (const own of byRoot)
    for (let at = 0; at < own.length && !ctx.signal.aborted; at += BATCH) {
      const batch: Prepared<PlusAddress>[] = [];
      for (const point of own.slice(at, at + BATCH)) batch.push(await resolver.prepare(point));
      yield batch;
      await yieldToEventLoop();
    }
}

/** The CPU refuses to tell the type of a block. */
class RefusedType extends SymbolFault {}

/** A refusal of what may be an address of another tool says so. */
function withMeaning(refusal: SymbolFault, text: string): FaultError {
  const meaning = refusal.fault === "not_found" ? otherMeaning(text) : undefined;
  return meaning === undefined ? refusal : new FaultError("not_found", `${refusal.message}; ${meaning}`);
}

const rootNameOf = ({ address }: Point<PlusAddress>): string => address.levels?.[0]?.name ?? "";

class Resolver {
  readonly #program: Program;
  readonly #blocks: ReadonlyMap<string, number>;
  readonly #types: ReadonlyMap<number, TypeId>;
  readonly #checksNames: boolean;
  readonly #ctx: DriverContext;
  readonly #typeOf = (typeId: number) => this.#program.type(typeId, this.#ctx);

  constructor(
    program: Program,
    blocks: ReadonlyMap<string, number>,
    types: ReadonlyMap<number, TypeId>,
    checksNames: boolean,
    ctx: DriverContext,
  ) {
    this.#program = program;
    this.#blocks = blocks;
    this.#types = types;
    this.#checksNames = checksNames;
    this.#ctx = ctx;
  }

  /** Throws what ends the look-up of all. */
  async prepare(point: Point<PlusAddress>): Promise<Prepared<PlusAddress>> {
    const { address } = point;
    try {
      const [root, levels] = await this.#rootOf(address.levels ?? []);
      const { place, type } = await locate(address, levels, root, this.#typeOf, this.#checksNames);
      return { point, address: { ...address, place }, type };
    } catch (error) {
      if (error instanceof RefusedType) return { point, refusal: error, retryAfterMs: REFUSED_AGAIN_MS };
      if (error instanceof SymbolFault) return { point, refusal: withMeaning(error, address.text), retryAfterMs: AGAIN_MS };
      throw error;
    }
  }

  /** The block or area of a symbol, and what of its levels is in that. Throws FaultError. */
  async #rootOf(levels: readonly Level[]): Promise<readonly [Root, readonly Level[]]> {
    const [first] = levels;
    if (!first) throw new TypeError("a symbol has a level");
    const block = this.#blocks.get(first.name);
    if (block !== undefined && first.indices === undefined) {
      const typeId = this.#types.get(block);
      if (typeof typeId === "object") throw new RefusedType(typeId.fault, `${levelText(first.name)}: ${typeId.message}`);
      if (typeId === undefined) throw new SymbolFault("not_found", `the block ${levelText(first.name)} is not in the PLC's working memory`);
      if (levels.length === 1) throw new SymbolFault("type_mismatch", `${levelText(first.name)} is a block: name a variable in it`);
      return [{ area: block, typeId }, levels.slice(1)];
    }
    const named = AREAS.find(({ name }) => name === first.name);
    if (named && levels.length > 1) return [named.root, levels.slice(1)];
    const names: Iterable<string>[] = [this.#blocks.keys()];
    for (const { root } of AREAS) {
      const tags = await this.#typeOf(root.typeId);
      if (tags?.has(first.name)) return [root, levels];
      if (tags) names.push(tags.keys());
    }
    throw new SymbolFault(
      "not_found",
      `the PLC's program has neither a block nor a tag ${levelText(first.name)}; ${nearWords(first.name, ...names)}`,
    );
  }
}
