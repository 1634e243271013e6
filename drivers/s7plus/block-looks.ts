import { FaultError } from "../../src/model/fault.ts";
import type { Confirmation, DeviceMemory, DriverContext, Point } from "../driver.ts";
import { NoAnswer } from "../lib/exchange.ts";
import { levelText, type PlusAddress } from "./address.ts";
import type { Program } from "./program.ts";
import { AREA } from "./requests.ts";

/** Blocks that were changed at each of so many looks in a row say nothing of a program. */
const MAX_CHANGES_IN_A_ROW = 5;
/** A CPU that does not tell of a single block, or loses the connection over it, is asked again after this. */
const AGAIN_MS = 600_000;
const KEY = "looks";

/** Kept over sessions in the memory of the device. */
interface Kept {
  /** Monotonic ms before which single blocks are not asked for, and why. */
  readonly notBeforeMs: number;
  readonly why: "untold" | "unbelieved";
  readonly changesInARow: number;
  /** The CPU has told of a single block. */
  readonly hasTold: boolean;
}

const WHY: Readonly<Record<Kept["why"], string>> = {
  untold: "the PLC does not tell of single blocks when they were changed",
  unbelieved: "the blocks of the PLC say at each look that they were changed, which is not believed",
};

/** The points of a source by the block that they are in. */
type ByBlock = ReadonlyMap<number, readonly Point<PlusAddress>[]>;

/**
 * Looks behind the values of a readout whether the blocks that they were read of still are those that were looked up: the time stamps of the
 * used blocks alone, one request each, the block first that was looked at longest ago. Tags have none: see TypeLooks.
 */
export class BlockLooks {
  readonly #program: Program;
  readonly #memory: DeviceMemory | undefined;
  #kept: Kept;
  /** By block: when the last look at it began, monotonic ms. */
  readonly #lookedMs = new Map<number, number>();
  #byBlock: { readonly points: readonly Point<PlusAddress>[]; readonly blocks: ByBlock } | undefined;
  /** What the last request took, ms. */
  #costMs = 0;

  constructor(program: Program, memory: DeviceMemory | undefined) {
    this.#program = program;
    this.#memory = memory;
    this.#kept = (memory?.get(KEY) as Kept | undefined) ?? { notBeforeMs: 0, why: "untold", changesInARow: 0, hasTold: false };
  }

  /** What keeps it from looking, for status; undefined: nothing. */
  get problem(): string | undefined {
    const { notBeforeMs, why } = this.#kept;
    if (performance.now() >= notBeforeMs) return undefined;
    return `${WHY[why]}; another program is noticed when the list of its blocks differs or a variable fails`;
  }

  /** See Session.confirm. Throws ReasonError. */
  async confirm(points: readonly Point<PlusAddress>[], withinMs: number, ctx: DriverContext): Promise<Confirmation<PlusAddress>> {
    const blocks = this.#blocksOf(points);
    const stamped = [...blocks.keys()].filter((area) => this.#program.stampsOf(area) !== undefined);
    if (stamped.length === 0 || this.problem !== undefined) return NOTHING;
    const beganMs = performance.now();
    const changed = await this.#look(stamped, withinMs, ctx);
    if (this.problem !== undefined && (changed.length === 0 || this.#kept.why === "unbelieved")) return NOTHING;
    const nowMs = performance.now();
    const ageMs = nowMs - Math.min(...stamped.map((area) => this.#lastLookMs(area)));
    if (changed.length === 0) return { doubtful: [], ageMs };
    this.#program.forget();
    const named = (area: number, wordsOf: (name: string) => string) => {
      const own = blocks.get(area) ?? [];
      return { points: own, detail: wordsOf(levelText(own[0]?.address.levels?.[0]?.name ?? "")) };
    };
    // There was a download, which may have changed those for which there was no time.
    const unknown = stamped.filter((area) => this.#lastLookMs(area) < beganMs);
    return {
      doubtful: [
        ...changed.map((area) => named(area, (name) => `the block ${name} was changed in the PLC after its variables were looked up`)),
        ...unknown.map((area) => named(area, (name) => `other blocks were changed in the PLC, and whether ${name} was is not known yet`)),
      ],
      ageMs,
    };
  }

  /** The blocks that were changed. */
  async #look(areas: readonly number[], withinMs: number, ctx: DriverContext): Promise<readonly number[]> {
    const beganMs = performance.now();
    const oldestFirst = [...areas].sort((one, other) => this.#lastLookMs(one) - this.#lastLookMs(other));
    const changed: number[] = [];
    for (const [i, area] of oldestFirst.entries()) {
      const atMs = performance.now();
      if (ctx.signal.aborted || (i > 0 && atMs - beganMs + this.#costMs > withinMs)) break;
      const isChanged = await this.#isChanged(area, ctx).catch((error: unknown) => {
        // What was found holds although the connection is lost.
        if (changed.length === 0) throw error;
      });
      this.#costMs = performance.now() - atMs;
      if (isChanged === undefined) break;
      this.#lookedMs.set(area, atMs);
      if (isChanged) changed.push(area);
    }
    this.#count(changed.length > 0);
    return changed;
  }

  #count(isChanged: boolean): void {
    const changesInARow = isChanged ? this.#kept.changesInARow + 1 : 0;
    if (changesInARow >= MAX_CHANGES_IN_A_ROW) this.#giveUp("unbelieved");
    else if (changesInARow !== this.#kept.changesInARow) this.#keep({ changesInARow });
  }

  /** Undefined: the CPU does not tell. Throws ReasonError: the connection is lost; it is not asked so again for a while. */
  async #isChanged(area: number, ctx: DriverContext): Promise<boolean | undefined> {
    try {
      const found = await this.#program.changeOf(area, ctx);
      // Who never told of a single block may not know it by its id.
      if (found === "untold" || (found === "gone" && !this.#kept.hasTold)) {
        this.#giveUp("untold");
        return undefined;
      }
      if (!this.#kept.hasTold) this.#keep({ hasTold: true });
      return found !== "same";
    } catch (error) {
      if (error instanceof FaultError && error.scope === "busy") return undefined;
      if (!ctx.signal.aborted) this.#giveUp("untold");
      if (!(error instanceof FaultError) && !(error instanceof NoAnswer)) throw error;
      ctx.log.debug({ err: error }, "the PLC does not tell when a block was changed");
      return undefined;
    }
  }

  #giveUp(why: Kept["why"]): void {
    this.#keep({ notBeforeMs: performance.now() + AGAIN_MS, why, changesInARow: 0 });
  }

  #keep(kept: Partial<Kept>): void {
    this.#kept = { ...this.#kept, ...kept };
    this.#memory?.set(KEY, this.#kept);
  }

  /** A list of all blocks is a look at each. */
  #lastLookMs(area: number): number {
    return Math.max(this.#lookedMs.get(area) ?? Number.NEGATIVE_INFINITY, this.#program.listBeganMs);
  }

  #blocksOf(points: readonly Point<PlusAddress>[]): ByBlock {
    if (this.#byBlock?.points === points) return this.#byBlock.blocks;
    const isInBlock = ({ address: { levels, place } }: Point<PlusAddress>): boolean =>
      levels !== undefined && place !== undefined && place.area >= AREA.dataBlock;
    const blocks = Map.groupBy(points.filter(isInBlock), ({ address: { place } }) => place?.area ?? 0);
    this.#byBlock = { points, blocks };
    return blocks;
  }
}

const NOTHING: Confirmation<never> = { doubtful: [], ageMs: undefined };
