import { LargeMap } from "../../../src/base/large-map.ts";
import { FaultError } from "../../../src/model/fault.ts";
import type { DriverContext, Point, Prepared } from "../../driver.ts";
import { quote } from "../../lib/text.ts";
import { type CipAddress, textOf } from "../address.ts";
import { tagPath } from "../cip.ts";
import { pathOf } from "../locate.ts";
import type { Messenger } from "../messenger.ts";
import { askAlone, baseAlone } from "./alone.ts";
import { type Catalog, NotListed } from "./catalog.ts";
import { type Base, locateVariable, MAX_INDEX, UntoldMembers } from "./locate.ts";
import { DATA_SEGMENT_BYTES, type ListedVariable, type VariableKind } from "./objects.ts";
import { isStructureCode } from "./types.ts";

type Wanted = Point<CipAddress>;
type Found = readonly Prepared<CipAddress>[];

/** Entries of a list that are looked at. */
const MAX_LISTED = 100_000;
/** Variables that are asked for between two batches. */
const ASKED_AT_ONCE = 20;

/** A path says its length in words, in one byte. A request for a part of an element has an index and a data segment behind the address. */
const MOST_PATH_BYTES = 510;
const LONGEST_INDEX = [MAX_INDEX, MAX_INDEX, MAX_INDEX];

export interface VariableLookUp {
  readonly messenger: Messenger;
  readonly catalog: Catalog;
}

/** Points of variables whose types the controller does not tell, and why: they are asked for by name. */
type Untold = Map<Wanted, FaultError>;

/** Looks up where points are: by the list of the variables, and what is not in it by asking for it. Throws ReasonError. */
export async function* lookUpVariables(points: readonly Wanted[], using: VariableLookUp, ctx: DriverContext): AsyncGenerator<Found> {
  const refused: Prepared<CipAddress>[] = [];
  const wanted: Record<VariableKind, Wanted[]> = { system: [], user: [] };
  for (const point of points) {
    const refusal = pathRefusal(point.address);
    if (refusal) refused.push({ point, refusal });
    else wanted[nameOf(point).startsWith("_") ? "system" : "user"].push(point);
  }
  if (refused.length > 0) yield refused;
  for (const kind of ["user", "system"] as const) {
    const missing = new LargeMap<Wanted[]>();
    for (const point of wanted[kind]) missing.getOrMake(nameOf(point).toLowerCase(), () => []).push(point);
    const untold: Untold = new Map();
    yield* fromList(missing, untold, kind, using, ctx);
    yield* oneByOne(
      wanted[kind].filter((point) => untold.has(point) || missing.get(nameOf(point).toLowerCase())),
      untold,
      using,
      ctx,
    );
  }
}

/** The variable that an address begins with. */
function nameOf({ address: { steps } }: Wanted): string {
  const [name] = steps;
  return typeof name === "string" ? name : "";
}

function pathRefusal(address: CipAddress): FaultError | undefined {
  const text = quote(textOf(address));
  if (address.program !== undefined)
    return new FaultError(
      "not_found",
      `${text}: only global variables are on the network of this controller; publish one in Sysmac Studio`,
    );
  try {
    const path = tagPath([...pathOf(address), ...LONGEST_INDEX]);
    if (path.length + DATA_SEGMENT_BYTES > MOST_PATH_BYTES) throw new RangeError(`a path of ${path.length} bytes`);
    return undefined;
  } catch (error) {
    if (error instanceof RangeError) return new FaultError("address_invalid", `${text}: ${error.message}`);
    throw error;
  }
}

/** Finds what the controller lists, and takes it out of `missing`. */
async function* fromList(
  missing: LargeMap<Wanted[]>,
  untold: Untold,
  kind: VariableKind,
  { catalog }: VariableLookUp,
  ctx: DriverContext,
): AsyncGenerator<Found> {
  for await (const listed of listVariables(catalog, kind, ctx, () => missing.size === 0)) {
    const found: Prepared<CipAddress>[] = [];
    for (const variable of listed) {
      const own = missing.get(variable.name.toLowerCase());
      if (!own) continue;
      missing.delete(variable.name.toLowerCase());
      for (const one of await locateAll(own, variable, untold, catalog, ctx)) found.push(one);
    }
    if (found.length > 0) yield found;
  }
}

/** The variables of a kind, page by page until `isEnough`; none where the controller has no list. Throws ReasonError. */
export async function* listVariables(
  catalog: Catalog,
  kind: VariableKind,
  ctx: DriverContext,
  isEnough: () => boolean = () => false,
): AsyncGenerator<readonly ListedVariable[]> {
  let last: number | undefined;
  for (let from = 1; !isEnough() && from <= MAX_LISTED; ) {
    const page = await catalog.page(from, kind, ctx).catch((error: unknown) => {
      if (error instanceof NotListed) return undefined;
      throw error;
    });
    if (!page) return;
    yield page.variables;
    // A page without entries ends the list, whatever it says of more.
    if (!page.hasMore || page.count === 0) return;
    // A page that comes once more: the list is a circle.
    const [first] = page.variables;
    if (first && first.instance === last) return;
    last = first?.instance;
    from += page.count;
  }
}

async function locateAll(
  points: readonly Wanted[],
  { instance, name }: ListedVariable,
  untold: Untold,
  catalog: Catalog,
  ctx: DriverContext,
): Promise<Found> {
  try {
    const shape = await catalog.shapeOf(instance, name, ctx);
    const base = { path: [name], name, shape };
    return points.flatMap((point) => {
      const one = prepared(point, { ...base, steps: point.address.steps.slice(1) });
      if (!("refusal" in one) || !(one.refusal instanceof UntoldMembers)) return [one];
      untold.set(point, one.refusal);
      return [];
    });
  } catch (error) {
    if (!(error instanceof FaultError) || error.scope !== "points") throw error;
    for (const point of points) untold.set(point, error);
    return [];
  }
}

function prepared(point: Wanted, base: Base): Prepared<CipAddress> {
  try {
    const { place, type } = locateVariable(point.address, point.type, base);
    return { point, address: { ...point.address, variable: place }, type };
  } catch (error) {
    if (error instanceof FaultError) return { point, refusal: error };
    throw error;
  }
}

/** Asks for each point that no list has: the controller answers with its type, or with why it cannot be read. */
async function* oneByOne(points: readonly Wanted[], untold: Untold, using: VariableLookUp, ctx: DriverContext): AsyncGenerator<Found> {
  for (let at = 0; at < points.length; at += ASKED_AT_ONCE) {
    const found: Prepared<CipAddress>[] = [];
    for (const point of points.slice(at, at + ASKED_AT_ONCE)) {
      const answer = await askAlone(point, using.messenger, ctx);
      if (answer instanceof FaultError && answer.scope !== "points") throw answer;
      const why = untold.get(point);
      const isUntold = why && !(answer instanceof FaultError) && isStructureCode(answer.code);
      const base = answer instanceof FaultError ? answer : isUntold ? why : baseAlone(point, answer, using.catalog.lacking);
      const one = base instanceof FaultError ? { point, refusal: base } : prepared(point, base);
      found.push(one);
    }
    yield found;
  }
}
