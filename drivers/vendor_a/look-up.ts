import { LargeMap } from "../../src/base/large-map.ts";
import { createYielder, inSlices, type Steps, type YieldToEventLoop } from "../../src/base/timer.ts";
import { FaultError } from "../../src/model/fault.ts";
import type { DeviceMemory, DriverContext, Point, Prepared } from "../driver.ts";
import { groupTextSteps } from "../lib/group.ts";
import { quote } from "../lib/text.ts";
import { type CipAddress, textOf } from "./address.ts";
import { readRequest, STATUS, tagPath } from "./cip.ts";
import { locate, locateAlone, pathOf, wordSteps } from "./locate.ts";
import type { Messenger } from "./messenger.ts";
import { refusalOf } from "./refusals.ts";
import { type ListedSymbol, NotListed, type SymbolList } from "./symbols.ts";
import type { Templates } from "./templates.ts";
import { ATOMICS, DWORD, elementaryType, type Family } from "./types.ts";

type Wanted = Point<CipAddress>;
type Found = readonly Prepared<CipAddress>[];

const KEY = "listed";
/** Tags that are asked for one by one between two batches. */
const ASKED_AT_ONCE = 20;
/** Points in one step. */
const AT_ONCE = 250;

/** What a look-up needs of a session. */
export interface LookUp {
  readonly messenger: Messenger;
  readonly list: SymbolList;
  readonly templates: Templates;
  readonly family: Family;
  /** Names the program that the look-up is about. */
  readonly epoch: string;
}

/** How far the list of a scope was gone through when it was interrupted. */
interface Progress {
  readonly epoch: string;
  readonly scope: string;
  readonly next: number;
}

/**
 * Looks up where points are: by the list of the tags, page by page, and what is not in it by asking for it. Throws as `SymbolList.page` does.
 */
export async function* lookUp(points: readonly Wanted[], using: LookUp, ctx: DriverContext): AsyncGenerator<Found> {
  const yieldToEventLoop = createYielder();
  for (const own of await inSlices(groupTextSteps(points, scopeOf), yieldToEventLoop)) {
    const missing = new Missing();
    const untold = new Map<Wanted, FaultError>();
    await inSlices(missing.add(own), yieldToEventLoop);
    yield* fromList(missing, own[0]?.address.program, { ...using, yieldToEventLoop, untold }, ctx);
    const left = new Set(untold.keys());
    for (const point of await inSlices(missing.all(), yieldToEventLoop)) left.add(point);
    yield* oneByOne([...left], { ...using, untold }, ctx);
  }
}

/** Refusals that another program may undo: they are looked up again after this; undefined: the controller says when its program changes. Ms. */
export const againAfter = (found: Found, retryAfterMs: number | undefined): Found =>
  retryAfterMs === undefined
    ? found
    : found.map((one) => ("refusal" in one && one.refusal.fault !== "address_invalid" ? { ...one, retryAfterMs } : one));

const scopeOf = ({ address: { program } }: Wanted): string => program?.toLowerCase() ?? "";

function rootOf({ address: { steps } }: Wanted): string {
  const [root] = steps;
  return typeof root === "string" ? root.toLowerCase() : "";
}

/** Points of tags that have not been found, by the names of these. */
class Missing {
  #tags: readonly Wanted[][] = [];
  readonly #byName = new LargeMap<readonly Wanted[]>();

  *add(points: readonly Wanted[]): Steps<void> {
    this.#tags = yield* groupTextSteps(points, rootOf);
    for (const [i, own] of this.#tags.entries()) {
      if (i > 0 && i % AT_ONCE === 0) yield;
      const [first] = own;
      if (first) this.#byName.set(rootOf(first), own);
    }
  }

  get isEmpty(): boolean {
    return this.#byName.size === 0;
  }

  /** The points of a tag, which is missing no longer; undefined: nobody wants it. */
  take(name: string): readonly Wanted[] | undefined {
    const key = name.toLowerCase();
    const wanted = this.#byName.get(key);
    if (wanted) this.#byName.delete(key);
    return wanted;
  }

  *all(): Steps<readonly Wanted[]> {
    const points: Wanted[] = [];
    if (this.isEmpty) return points;
    for (const [i, own] of this.#tags.entries()) {
      if (i > 0 && i % AT_ONCE === 0) yield;
      const [first] = own;
      if (first && this.#byName.get(rootOf(first))) for (const point of own) points.push(point);
    }
    return points;
  }
}

interface NamedLookUp extends LookUp {
  /** Points of structures that the controller does not tell, and why: they may be members that can be read by name. */
  readonly untold: Map<Wanted, FaultError>;
}

interface ListedLookUp extends NamedLookUp {
  readonly yieldToEventLoop: YieldToEventLoop;
}

/** What the controller lists; taken out of `missing`. */
async function* fromList(missing: Missing, program: string | undefined, using: ListedLookUp, ctx: DriverContext): AsyncGenerator<Found> {
  const scope = program?.toLowerCase() ?? "";
  const begin = progressOf(ctx.device, scope, using.epoch);
  let from = begin;
  let isSecondRound = false;
  while (!missing.isEmpty) {
    const page = await using.list.page(program, from, ctx).catch((error: unknown) => {
      if (error instanceof NotListed) return error;
      throw error;
    });
    if (page instanceof NotListed) {
      const why = new FaultError(
        "device_error",
        `a structure, of which only members can be read: the controller does not tell it (${page.message})`,
      );
      for (const point of await inSlices(missing.all(), using.yieldToEventLoop)) using.untold.set(point, why);
      return;
    }
    const found: Prepared<CipAddress>[] = [];
    for (const symbol of page.symbols) {
      const wanted = missing.take(symbol.name);
      if (!wanted) continue;
      for (const one of await locateAll(wanted, symbol, using, ctx)) found.push(one);
    }
    if (found.length > 0) yield found;
    // From where an earlier look-up stopped, then what is before it.
    if (page.next === undefined && (begin === 0 || isSecondRound)) break;
    isSecondRound ||= page.next === undefined;
    from = page.next ?? 0;
    if (isSecondRound && from >= begin) break;
    remember(ctx.device, { epoch: using.epoch, scope, next: from });
  }
  remember(ctx.device, { epoch: using.epoch, scope, next: 0 });
}

function progressOf(memory: DeviceMemory | undefined, scope: string, epoch: string): number {
  const progress = memory?.get(KEY) as Progress | undefined;
  return progress?.scope === scope && progress.epoch === epoch ? progress.next : 0;
}

const remember = (memory: DeviceMemory | undefined, progress: Progress): void => memory?.set(KEY, progress);

async function locateAll(
  points: readonly Wanted[],
  symbol: ListedSymbol,
  { templates, family, yieldToEventLoop, untold }: ListedLookUp,
  ctx: DriverContext,
): Promise<Found> {
  const refuse = (refusal: FaultError): Found => points.map((point) => ({ point, refusal }));
  if (!symbol.isReadable)
    return refuse(new FaultError("access_denied", `${symbol.name}: External Access of the tag: None. Set it to Read Only or Read/Write`));
  const { template, code } = symbol.type;
  try {
    const { length } = symbol.dimensions;
    const type = template === undefined ? elementaryType(code, length, family) : { structure: await templates.get(template, ctx) };
    const found: Prepared<CipAddress>[] = [];
    for (const [i, point] of points.entries()) {
      if (i > 0 && i % AT_ONCE === 0) await yieldToEventLoop();
      found.push(prepared(point, () => locate(point.address, point.type, { ...symbol, type })));
    }
    return found;
  } catch (error) {
    if (!(error instanceof FaultError) || error.scope !== "points") throw error;
    for (const point of points) untold.set(point, error);
    return [];
  }
}

function prepared(point: Wanted, find: () => ReturnType<typeof locate>): Prepared<CipAddress> {
  try {
    const { place, type } = find();
    const last = place.sources.at(-1);
    tagPath([...(last?.path ?? []), ...(last?.dimensions ?? []).map(() => 0xffff_ffff)]);
    return { point, address: { ...point.address, place }, type };
  } catch (error) {
    if (error instanceof FaultError) return { point, refusal: error };
    if (error instanceof RangeError)
      return { point, refusal: new FaultError("address_invalid", `${quote(textOf(point.address))}: ${error.message}`) };
    throw error;
  }
}

/** What is in no list: the controller says of which type it is, or why it cannot be read. */
async function* oneByOne(points: readonly Wanted[], using: NamedLookUp, ctx: DriverContext): AsyncGenerator<Found> {
  for (let at = 0; at < points.length; at += ASKED_AT_ONCE) {
    const found: Prepared<CipAddress>[] = [];
    for (const point of points.slice(at, at + ASKED_AT_ONCE)) found.push(await askOne(point, using, ctx));
    yield found;
  }
}

async function askOne(point: Wanted, using: NamedLookUp, ctx: DriverContext): Promise<Prepared<CipAddress>> {
  const { address } = point;
  const { family } = using;
  const refuse = (refusal: FaultError): Prepared<CipAddress> => ({ point, refusal });
  try {
    let code = await typeCode(address, using, ctx);
    // An element of an array of BOOL lies in an earlier word: its own number may be behind the last word.
    const mayBeBool = family === "logix" && address.bit === undefined && (point.type.scalar === "auto" || point.type.scalar === "bool");
    if (typeof code !== "number" && code.fault === "out_of_range" && mayBeBool) {
      const word = await typeCode({ ...address, steps: wordSteps(address) }, using, ctx);
      if (word === DWORD) code = word;
    }
    const found = code;
    const untold = using.untold.get(point);
    if (untold && typeof found === "number" && !ATOMICS.has(found)) return refuse(untold);
    if (typeof found === "number") return prepared(point, () => locateAlone(address, point.type, found, family));
    if (found.scope === "points") return refuse(found);
    throw found;
  } catch (error) {
    if (error instanceof RangeError)
      return refuse(new FaultError("address_invalid", `${quote(textOf({ ...address, bit: undefined }))}: ${error.message}`));
    throw error;
  }
}

/** The type code that a read of one element has, or why it is refused. Throws RangeError: the path is too long. */
function typeCode(address: CipAddress, { messenger }: LookUp, ctx: DriverContext): Promise<number | FaultError> {
  const text = textOf({ ...address, bit: undefined });
  return messenger.ask<number | FaultError>(
    ctx,
    () => text,
    readRequest(tagPath(pathOf(address)), 1),
    ({ status, extended, bytes, at, end }, done) => {
      const isAnswered = (status === STATUS.ok || status === STATUS.partial) && end - at >= 2;
      done(isAnswered ? bytes.readUInt16LE(at) : refusalOf(status, extended, text));
      return undefined;
    },
  );
}
