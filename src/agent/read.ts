import type { AnyDriver, AnySession, DriverContext, Limits, Point, Request } from "../../drivers/driver.ts";
import { toFailure } from "../model/failure.ts";
import { FaultError } from "../model/fault.ts";
import type { ReasonError } from "../model/reason.ts";
import type { Reading } from "../model/value.ts";

/**
 * What a source has learned about its device: which points may share a request. It begins with all in one group;
 * a refused request is halved until the point or the gap that the device does not have stands alone.
 */
export interface GroupMemory {
  groups: readonly (readonly Point[])[];
  planned: { readonly limits: Limits; readonly requests: readonly (readonly Request[])[] } | undefined;
}

export const createGroupMemory = (points: readonly Point[]): GroupMemory => ({
  groups: points.length === 0 ? [] : [points],
  planned: undefined,
});

export interface ReadOutcome {
  /** By `point.index`; undefined: not answered. */
  readonly readings: (Reading | undefined)[];
  /** The source failed; the session is of no more use. */
  readonly failure: ReasonError | undefined;
  /** The readout's deadline came between two requests; the session is well. */
  readonly ranOut: boolean;
  readonly requests: number;
}

/**
 * Reads every point once. A refused request is read again in halves, so that one wrong address costs one reading
 * and not its group; what was learned stays in `memory`. Up to `limits.inFlight` requests are under way at once.
 */
export async function readAll(driver: AnyDriver, session: AnySession, memory: GroupMemory, ctx: DriverContext): Promise<ReadOutcome> {
  const requests = planned(driver, session.limits, memory);
  const readings: (Reading | undefined)[] = [];
  const split = new Map<Request, Part[]>();
  let failure: ReasonError | undefined;
  let sent = 0;
  let cursor = 0;
  const flat = requests.length === 1 ? (requests[0] ?? []) : requests.flat();
  const stopped = () => failure !== undefined || ctx.signal.aborted;

  const ask = async (request: Request): Promise<FaultError | undefined> => {
    sent++;
    try {
      const answer = await session.read(request, ctx);
      for (let i = 0; i < request.points.length; i++) {
        const point = request.points[i];
        if (point) readings[point.index] = answer[i];
      }
      return undefined;
    } catch (error) {
      const known = toFailure(error);
      if (known instanceof FaultError) return known;
      failure ??= known;
      return undefined;
    }
  };

  /** Halves a refused request. The parts keep the order of the points; the last part of each half may touch the first of the next. */
  const bisect = async (points: readonly Point[]): Promise<Part[]> => {
    const half = points.length >> 1;
    let whole = true;
    const sides: Part[][] = [];
    for (const side of [points.slice(0, half), points.slice(half)]) {
      const parts: Part[] = [];
      for (const request of driver.plan(side, session.limits)) {
        const refusal = stopped() ? undefined : await ask(request);
        whole &&= !stopped() && refusal === undefined;
        if (!refusal) parts.push({ points: request.points, refused: false, cutBefore: false });
        else if (request.points.length > 1) parts.push(...(await bisect(request.points)));
        else {
          refuse(readings, request.points, refusal);
          parts.push({ points: request.points, refused: true, cutBefore: false });
        }
      }
      sides.push(parts);
    }
    const [left = [], right = []] = sides;
    // Each half is well and both together are not: what the device lacks lies between them.
    return whole ? [...left, ...right.map((part, i) => (i === 0 ? { ...part, cutBefore: true } : part))] : [...left, ...right];
  };

  const lane = async (): Promise<void> => {
    while (!stopped()) {
      const request = flat[cursor++];
      if (!request) return;
      const refusal = await ask(request);
      if (!refusal) continue;
      if (request.points.length > 1) split.set(request, await bisect(request.points));
      else refuse(readings, request.points, refusal);
    }
  };

  const width = Math.min(session.limits.inFlight, flat.length);
  if (width <= 1) await lane();
  else await Promise.all(Array.from({ length: width }, lane));
  if (split.size > 0) {
    memory.groups = requests.flatMap((ofGroup) => regroup(ofGroup, split));
    memory.planned = undefined;
  }
  return { readings, failure, ranOut: failure === undefined && ctx.signal.aborted && cursor < flat.length, requests: sent };
}

/** Some points of a request that was refused as a whole. */
export interface Part {
  readonly points: readonly Point[];
  /** Stands alone and is refused. */
  readonly refused: boolean;
  /** The device lacks something between this part and the one before. */
  readonly cutBefore: boolean;
}

function planned(driver: AnyDriver, limits: Limits, memory: GroupMemory): readonly (readonly Request[])[] {
  if (memory.planned?.limits !== limits) memory.planned = { limits, requests: memory.groups.map((group) => driver.plan(group, limits)) };
  return memory.planned.requests;
}

function refuse(readings: (Reading | undefined)[], points: readonly Point[], { fault, message }: FaultError): void {
  for (const point of points) readings[point.index] = { quality: "bad", fault, detail: message };
}

/**
 * The groups after a readout. Requests that were answered stay together; a refused point stands alone, and a cut remains
 * where the device lacks something between two points. What else was halved on the way is joined again. Pure.
 */
export function regroup(requests: readonly Request[], split: ReadonlyMap<Request, readonly Part[]>): (readonly Point[])[] {
  const together = requests.filter((r) => !split.has(r)).flatMap((r) => r.points);
  const groups: (readonly Point[])[] = together.length > 0 ? [together] : [];
  for (const request of requests) {
    let open: Point[] = [];
    const close = () => {
      if (open.length > 0) groups.push(open);
      open = [];
    };
    for (const part of split.get(request) ?? []) {
      if (part.refused || part.cutBefore) close();
      open.push(...part.points);
      if (part.refused) close();
    }
    close();
  }
  return groups;
}
