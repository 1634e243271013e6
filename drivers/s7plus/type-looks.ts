import { FaultError } from "../../src/model/fault.ts";
import type { DeviceMemory, DriverContext } from "../driver.ts";
import { NoAnswer } from "../lib/exchange.ts";
import { allObjects, type PlusObject } from "./objects.ts";

/** When a type was changed, and when the variables of an area of the tag table were. */
export const TYPE_CHANGED = [529, 3737] as const;

/** All looks behind one list of the blocks take no longer than this; one is made in any case. */
const LOOK_MS = 200;
/** A CPU that does not tell of a type alone, or loses the connection over it, is asked again after this. */
const AGAIN_MS = 600_000;
/** Types that were changed at each of so many looks in a row say nothing of a program. */
const MAX_CHANGES_IN_A_ROW = 5;
const KEY = "type looks";

/** Kept over sessions in the memory of the device. */
interface Kept {
  /** Monotonic ms before which no type is looked at. */
  readonly notBeforeMs: number;
  readonly changesInARow: number;
}

/** The stamps of TYPE_CHANGED, empty where the CPU does not tell. */
export type TypeStamps = readonly string[];

/** Asks for attributes of a type; undefined: there is no such type. */
type Explore = (typeId: number, ctx: DriverContext) => Promise<readonly PlusObject[] | undefined>;

/**
 * Looks whether the types of what is read still are those that were looked up: of the tag table, whose tags are in no block, and of structures and
 * function blocks, which may change while the blocks keep their own stamps.
 */
export class TypeLooks {
  readonly #explore: Explore;
  readonly #memory: DeviceMemory | undefined;
  #kept: Kept;
  /** By type: when it was looked at last, monotonic ms. */
  readonly #lookedMs = new Map<number, number>();

  constructor(explore: Explore, memory: DeviceMemory | undefined) {
    this.#explore = explore;
    this.#memory = memory;
    this.#kept = (memory?.get(KEY) as Kept | undefined) ?? { notBeforeMs: 0, changesInARow: 0 };
  }

  /** `stamps`: by type, as it was looked up. True: one was changed since then. Throws ReasonError: the connection is lost. */
  async isChanged(stamps: ReadonlyMap<number, TypeStamps>, ctx: DriverContext): Promise<boolean> {
    const beganMs = performance.now();
    if (beganMs < this.#kept.notBeforeMs) return false;
    const lastMs = (typeId: number): number => this.#lookedMs.get(typeId) ?? Number.NEGATIVE_INFINITY;
    const oldestFirst = [...stamps].sort(([one], [other]) => lastMs(one) - lastMs(other));
    for (const [typeId, before] of oldestFirst) {
      const isChanged = ctx.signal.aborted ? undefined : await this.#look(typeId, before, ctx);
      if (isChanged === undefined) return false;
      this.#lookedMs.set(typeId, performance.now());
      if (isChanged) return this.#isBelieved();
      if (this.#kept.changesInARow > 0) this.#keep({ changesInARow: 0 });
      if (performance.now() - beganMs >= LOOK_MS) return false;
    }
    return false;
  }

  #isBelieved(): boolean {
    const changesInARow = this.#kept.changesInARow + 1;
    const isBelieved = changesInARow < MAX_CHANGES_IN_A_ROW;
    this.#keep(isBelieved ? { changesInARow } : { changesInARow: 0, notBeforeMs: performance.now() + AGAIN_MS });
    return isBelieved;
  }

  /** Undefined: the CPU does not tell now. */
  async #look(typeId: number, before: TypeStamps, ctx: DriverContext): Promise<boolean | undefined> {
    // If the connection is lost over it, this holds.
    this.#keep({ notBeforeMs: performance.now() + AGAIN_MS });
    try {
      const all = [...allObjects((await this.#explore(typeId, ctx)) ?? [])];
      const found = all.find(({ id }) => id === typeId) ?? (all.length === 1 ? all[0] : undefined);
      const isChanged = found && differ(before, stampsOf(found));
      if (isChanged !== undefined) this.#keep({ notBeforeMs: 0 });
      return isChanged;
    } catch (error) {
      if (error instanceof FaultError && error.scope === "busy") this.#keep({ notBeforeMs: 0 });
      if (!(error instanceof FaultError) && !(error instanceof NoAnswer)) throw error;
      ctx.log.debug({ err: error }, "the PLC does not tell when a type was changed");
      return undefined;
    }
  }

  #keep(kept: Partial<Kept>): void {
    this.#kept = { ...this.#kept, ...kept };
    this.#memory?.set(KEY, this.#kept);
  }
}

/** Undefined: the CPU does not tell when it was changed. */
export function typeStampsOf(type: PlusObject): TypeStamps | undefined {
  const stamps = stampsOf(type);
  return stamps.some((stamp) => stamp !== "") ? stamps : undefined;
}

const stampsOf = ({ attributes }: PlusObject): TypeStamps => TYPE_CHANGED.map((stamp) => String(attributes.get(stamp)?.value.value ?? ""));

/** Undefined: they have no stamp in common. */
export function differ(before: TypeStamps, now: TypeStamps): boolean | undefined {
  const both = now.flatMap((stamp, i) => (stamp !== "" && before[i] ? [[stamp, before[i]] as const] : []));
  return both.length === 0 ? undefined : both.some(([stamp, known]) => stamp !== known);
}
