import { createHash, randomUUID } from "node:crypto";
import { createYielder } from "../../src/base/timer.ts";
import { FaultError } from "../../src/model/fault.ts";
import type { DeviceMemory, DriverContext } from "../driver.ts";
import { numberOf, parseExplored, parseItems } from "./answers.ts";
import { Malformed } from "./cursor.ts";
import type { PlusLink } from "./link.ts";
import { type Member, membersOf } from "./members.ts";
import { allObjects, type PlusObject } from "./objects.ts";
import { checkRights } from "./open-session.ts";
import { AREA, explore, itemAddress, itemFields, MAX_ITEMS_BYTES, readItems } from "./requests.ts";
import { isError, itemRefusal, requestRefusal, tellsOfProgram } from "./return-values.ts";
import type { Root, TypeTable } from "./symbols.ts";
import { differ, TYPE_CHANGED, TypeLooks, type TypeStamps, typeStampsOf } from "./type-looks.ts";

/** The object that has all blocks. */
const PROGRAM = 3;
const NAME = 233;
/** When a block, or its structure, was changed last. */
const CHANGED = [2529, 7733] as const;
const DATA_BLOCK_CLASS = 2574;
/** Of a block: the id of its type. */
const TYPE_LID = 1;

/** Areas of the tag table, in the order in which a tag is looked for. */
export const AREAS: readonly { readonly name: string; readonly root: Root }[] = [
  { name: "MArea", root: { area: AREA.memory, typeId: 0x9003_0000 } },
  { name: "QArea", root: { area: AREA.outputs, typeId: 0x9002_0000 } },
  { name: "IArea", root: { area: AREA.inputs, typeId: 0x9001_0000 } },
  { name: "S7Timers", root: { area: AREA.timers, typeId: 0x9005_0000 } },
  { name: "S7Counters", root: { area: AREA.counters, typeId: 0x9006_0000 } },
];

/** Members that are kept at once, so that a CPU with many types takes bounded memory; beyond them types are asked for again. */
const MAX_MEMBERS = 100_000;
/** Types whose stamps are kept: those that are looked up first. */
const MAX_TYPE_STAMPS = 1000;
/** Types are kept for so long: stamps do not tell of every change. */
const TYPES_FOR_MS = 300_000;
const KEY = "program";

/** What is known of the program of a CPU. Kept over sessions in the memory of the device. */
interface Known {
  /** Of this memory: no other one has it. */
  readonly id: string;
  /** Of all blocks and their stamps; undefined: not asked for since all was forgotten. */
  readonly stamp: string | undefined;
  /** By block, of CHANGED, empty where the CPU does not tell: from before its variables were looked up. */
  readonly stamps: ReadonlyMap<number, readonly string[]>;
  /** By type, of those that say when they were changed: as they were looked up. */
  readonly typeStamps: ReadonlyMap<number, TypeStamps>;
  /** How often there was another program, or a variable was no longer where it had been. */
  readonly generation: number;
  /** What listing the blocks took. */
  readonly listMs: number;
}

/** The type of a block; undefined: the block has none. */
export type TypeId = number | FaultError | undefined;

/** Longer than this, listing the blocks is no small part of a readout. */
const QUICK_MS = 1000;

/** The blocks and types of a CPU, asked for as they are needed. */
export class Program {
  readonly #link: PlusLink;
  readonly #session: number;
  readonly #maxItems: number;
  readonly #memory: DeviceMemory | undefined;
  readonly #epochSuffix: string;
  readonly #typeLooks: TypeLooks;
  #known: Known;
  /** By name: the block's area. */
  #blocks: ReadonlyMap<string, number> | undefined;
  readonly #typeIds = new Map<number, number | undefined>();
  readonly #types = new Map<number, TypeTable | undefined>();
  #members = 0;
  #typesSinceMs = 0;
  #listBeganMs = Number.NEGATIVE_INFINITY;
  #listedMs = Number.NEGATIVE_INFINITY;
  #hasStamps = true;

  constructor(link: PlusLink, session: number, maxItems: number, memory: DeviceMemory | undefined) {
    this.#link = link;
    this.#session = session;
    this.#maxItems = maxItems;
    this.#memory = memory;
    this.#typeLooks = new TypeLooks((typeId, ctx) => this.#explore(ctx, typeId, TYPE_CHANGED, "when a type was changed"), memory);
    const kept = memory?.get(KEY) as Known | undefined;
    this.#known = kept ?? { id: randomUUID(), stamp: undefined, stamps: new Map(), typeStamps: new Map(), generation: 0, listMs: 0 };
    memory?.set(KEY, this.#known);
    // If looking for another program is left to preparing, each session prepares.
    this.#epochSuffix = this.isSlow ? ` ${randomUUID()}` : "";
  }

  /** What places of symbols hold for. */
  get epoch(): string {
    const { id, generation } = this.#known;
    return `${id} ${generation}${this.#epochSuffix}`;
  }

  /** True: listing the blocks takes so long that it is left to preparing. */
  get isSlow(): boolean {
    return this.#known.listMs > QUICK_MS;
  }

  /** When the blocks were listed last, monotonic ms. */
  get listedMs(): number {
    return this.#listedMs;
  }

  /** When the last list of the blocks was asked for, monotonic ms. */
  get listBeganMs(): number {
    return this.#listBeganMs;
  }

  /** The CPU has another program, or a variable is no longer where it was: all is looked up again, and the blocks are listed before. */
  forget(): void {
    this.#dropTypes();
    this.#learn({ generation: this.#known.generation + 1, stamp: undefined, stamps: new Map(), typeStamps: new Map() });
  }

  /** When a block was changed, as it was listed last; undefined: the CPU does not say. */
  stampsOf(area: number): readonly string[] | undefined {
    const stamps = this.#known.stamps.get(area);
    return stamps?.some((stamp) => stamp !== "") ? stamps : undefined;
  }

  /** Asks whether a block was changed since it was listed. `untold`: the CPU does not tell of it alone. Throws as `list`. */
  async changeOf(area: number, ctx: DriverContext): Promise<"same" | "changed" | "gone" | "untold"> {
    const before = this.stampsOf(area);
    const objects = await this.#explore(ctx, area, CHANGED, "when a block was changed");
    if (!objects) return "gone";
    const all = [...allObjects(objects)];
    const found = all.find(({ id }) => id === area) ?? (all.length === 1 ? all[0] : undefined);
    const now = found ? stampsIn(found) : [];
    const both = now.flatMap((stamp, i) => (stamp !== "" && before?.[i] ? [[stamp, before[i]] as const] : []));
    if (both.length === 0) return "untold";
    return both.some(([stamp, known]) => stamp !== known) ? "changed" : "same";
  }

  /** Asks for the blocks, and whether types were changed. True: there is another program than before. Throws as the link does, and FaultError. */
  async list(ctx: DriverContext): Promise<boolean> {
    const beganMs = performance.now();
    const objects = await this.#exploreBlocks(ctx);
    const blocks = new Map<string, number>();
    const byBlock = new Map<number, readonly string[]>();
    const stamps = createHash("sha256");
    for (const object of allObjects(objects)) {
      const { id, classId, attributes } = object;
      if (classId !== DATA_BLOCK_CLASS || !isBlock(id)) continue;
      const name = attributes.get(NAME)?.value.value;
      if (typeof name !== "string") continue;
      blocks.set(name, id);
      const own = stampsIn(object);
      byBlock.set(id, own);
      stamps.update(JSON.stringify([name, id, ...own]));
    }
    this.#listBeganMs = beganMs;
    this.#listedMs = performance.now();
    const stamp = stamps.digest("base64url");
    const { stamp: before, generation } = this.#known;
    const areOthers = before !== undefined && before !== stamp;
    const listMs = this.#listedMs - beganMs;
    const isChanged = areOthers || (await this.#typeLooks.isChanged(this.#known.typeStamps, ctx));
    if (isChanged) this.#dropTypes();
    this.#blocks = blocks;
    this.#learn({
      stamp,
      stamps: byBlock,
      ...(isChanged && { typeStamps: new Map<number, TypeStamps>() }),
      generation: generation + (isChanged ? 1 : 0),
      listMs,
    });
    return isChanged;
  }

  /** Without the time stamps of changes where the CPU knows none of them. */
  async #exploreBlocks(ctx: DriverContext): Promise<PlusObject[]> {
    const what = "the list of its blocks";
    if (this.#hasStamps) {
      const objects = await this.#explore(ctx, PROGRAM, [NAME, ...CHANGED], what).catch((error: unknown) => {
        if (!(error instanceof FaultError) || error.scope !== "points") throw error;
        ctx.log.debug({ err: error }, "the PLC does not tell when its blocks were changed");
      });
      if (objects) return objects;
      this.#hasStamps = false;
    }
    return (await this.#explore(ctx, PROGRAM, [NAME], what)) ?? [];
  }

  /** Names of all blocks with where they are. Throws as `list`. */
  async blocks(ctx: DriverContext): Promise<ReadonlyMap<string, number>> {
    if (!this.#blocks) await this.list(ctx);
    return this.#blocks ?? new Map();
  }

  /**
   * The types of blocks; a block that has none is not in the CPU's working memory, and one whose type is refused has that refusal, which is
   * not kept. Throws as `list`, and ReasonError where the session has no rights any more.
   */
  async typeIds(areas: readonly number[], ctx: DriverContext): Promise<ReadonlyMap<number, TypeId>> {
    const missing = areas.filter((area) => !this.#typeIds.has(area));
    const atOnce = Math.max(
      1,
      Math.min(this.#maxItems, Math.floor(MAX_ITEMS_BYTES / itemAddress({ area: 0xffff_ffff, lids: [TYPE_LID] }).length)),
    );
    const refused = new Map<number, FaultError>();
    for (let at = 0; at < missing.length; at += atOnce) await this.#readTypeIds(missing.slice(at, at + atOnce), refused, ctx);
    if (refused.size === 0) return this.#typeIds;
    const isDenied = refused.size === areas.length && [...refused.values()].every(({ fault }) => fault === "access_denied");
    if (isDenied) await checkRights(this.#link, this.#session, ctx);
    return new Map<number, TypeId>([...this.#typeIds, ...refused]);
  }

  /** The members of a type; undefined: the CPU has no such type. Throws as `list`. */
  async type(typeId: number, ctx: DriverContext): Promise<TypeTable | undefined> {
    if (this.#types.has(typeId)) return this.#types.get(typeId);
    const objects = await this.#explore(ctx, typeId, [], `its type 0x${typeId.toString(16).toUpperCase()}`);
    const lists = [...allObjects(objects ?? [])].filter(({ typeBlocks }) => typeBlocks.length > 0);
    // If one object alone lists members, it is what was asked for, whatever its id.
    const found = lists.find(({ id }) => id === typeId) ?? (lists.length === 1 ? lists[0] : undefined);
    // Blocks have looks of their own (BlockLooks).
    if (found && !isBlock(typeId)) this.#learnStamps(typeId, typeStampsOf(found));
    const table = found && (await tableOf(found).catch((error: unknown) => this.#unreadable(error, typeId, ctx)));
    this.#members += table?.size ?? 0;
    if (this.#members > MAX_MEMBERS) {
      this.#types.clear();
      this.#members = table?.size ?? 0;
    }
    this.#types.set(typeId, table);
    return table;
  }

  /** Types that were asked for long ago are asked for again. */
  renewOld(): void {
    if (performance.now() - this.#typesSinceMs > TYPES_FOR_MS) this.#dropTypes();
  }

  /** What is not understood of one type hurts no other. */
  #unreadable(error: unknown, typeId: number, { log }: DriverContext): undefined {
    if (!(error instanceof Malformed)) throw error;
    log.warn({ type: typeId, err: error }, "a type of the PLC's program cannot be read; its variables are not found");
  }

  /** Variables of a type that was changed since it was looked up before are looked up again. */
  #learnStamps(typeId: number, now: TypeStamps | undefined): void {
    const { typeStamps, generation } = this.#known;
    const before = typeStamps.get(typeId);
    if (!now || (!before && typeStamps.size >= MAX_TYPE_STAMPS)) return;
    const isChanged = before !== undefined && differ(before, now) === true;
    if (before && !isChanged) return;
    this.#learn({ typeStamps: new Map(typeStamps).set(typeId, now), generation: generation + (isChanged ? 1 : 0) });
  }

  #learn(known: Partial<Known>): void {
    this.#known = { ...this.#known, ...known };
    this.#memory?.set(KEY, this.#known);
  }

  #dropTypes(): void {
    this.#blocks = undefined;
    this.#typeIds.clear();
    this.#types.clear();
    this.#members = 0;
    this.#typesSinceMs = performance.now();
  }

  /** Undefined: there is no such object. */
  #explore(ctx: DriverContext, object: number, attributes: readonly number[], what: string): Promise<PlusObject[] | undefined> {
    return this.#link.ask(
      ctx,
      () => what,
      explore(this.#session, object, attributes),
      (value, cursor, integrityId) => {
        if (!isError(value)) return parseExplored(cursor, integrityId);
        if (tellsOfProgram(value)) return undefined;
        throw requestRefusal(value, what);
      },
      "help",
    );
  }

  #readTypeIds(areas: readonly number[], refused: Map<number, FaultError>, ctx: DriverContext): Promise<void> {
    const paths = areas.map((area) => ({ area, lids: [TYPE_LID] }));
    const items = Buffer.concat(paths.map((path) => itemAddress(path)));
    const fields = paths.reduce((sum, path) => sum + itemFields(path), 0);
    const what = `the types of ${areas.length} blocks`;
    return this.#link.ask(
      ctx,
      () => what,
      readItems(this.#session, items, areas.length, fields),
      (value, cursor) => {
        if (isError(value)) throw requestRefusal(value, what);
        for (const [i, item] of parseItems(cursor, areas.length).entries()) {
          const area = areas[i];
          if (area === undefined) continue;
          const name = `the type of the block 0x${area.toString(16).toUpperCase()}`;
          if (!item)
            refused.set(area, new FaultError("device_error", `${name}: the PLC's answer has neither a value nor a refusal for it`));
          else if ("refusal" in item && !tellsOfProgram(item.refusal)) refused.set(area, itemRefusal(item.refusal, name));
          else this.#typeIds.set(area, "value" in item ? numberOf(item.value) : undefined);
        }
      },
      "help",
    );
  }
}

const isBlock = (id: number): boolean => id >>> 16 === AREA.dataBlock >>> 16;

const stampsIn = ({ attributes }: PlusObject): readonly string[] =>
  CHANGED.map((stamp) => String(attributes.get(stamp)?.value.value ?? ""));

async function tableOf(object: PlusObject): Promise<TypeTable> {
  const table = new Map<string, Member>();
  const yieldToEventLoop = createYielder();
  for (const member of membersOf(object)) {
    table.set(member.name, member);
    if (table.size % 256 === 0) await yieldToEventLoop();
  }
  return table;
}
