import type { AnyDriver, AnySession, DriverContext, Limits, Point, Request } from "../../drivers/driver.ts";
import { toFailure } from "../model/failure.ts";
import { FaultError } from "../model/fault.ts";
import type { ReasonError } from "../model/reason.ts";
import type { Reading } from "../model/value.ts";
import {
  type BadReading,
  badReading,
  demote,
  type GroupMemory,
  joined,
  joinProbe,
  loneDue,
  type Part,
  plannedRequests,
  refuseLone,
  regroup,
  setGroups,
  startJoining,
  welcome,
} from "./memory.ts";

export { createGroupMemory, type GroupMemory } from "./memory.ts";

export interface ReadOutcome {
  /** By `point.index`; undefined: not answered. */
  readonly readings: (Reading | undefined)[];
  /** The source failed; the session is of no more use. */
  readonly failure: ReasonError | undefined;
  /** The part that was asked when the source failed. */
  readonly failedPart: string | undefined;
  /** How many parts there are to ask, where the source failed; 0 otherwise. */
  readonly parts: number;
  /** The readout's deadline came between two requests; the session is well. */
  readonly ranOut: boolean;
  readonly requests: number;
  /** Requests that the device answered, be it with a refusal. */
  readonly answered: number;
  /** Every refusal was about what was asked: the device is in order, whatever it says. */
  readonly definite: boolean;
}

export interface ReadOptions {
  /** Default: what the session grants. The same object for the same limits: planning is kept by it. */
  readonly limits?: Limits;
  /** What an earlier session of this readout has answered; it is not asked again. */
  readonly readings?: (Reading | undefined)[];
  /** Monotonic ms. */
  readonly now?: () => number;
  /** After this, refused requests are not taken apart further: the next readout goes on there. Default: never. */
  readonly searchUntilMs?: number;
}

/**
 * Reads every point once. A refused request is read again in halves, so that one wrong address costs one reading and not its group;
 * what was learned stays in `memory`. A refusal that is not about the points asked for goes to all of them, without halving; a silent
 * part is asked with one small request now and then. Up to `inFlight` requests are under way at once.
 */
export async function readAll(
  driver: AnyDriver,
  session: AnySession,
  memory: GroupMemory,
  ctx: DriverContext,
  options: ReadOptions = {},
): Promise<ReadOutcome> {
  const { limits = session.limits, readings = [], now = () => performance.now(), searchUntilMs = Number.POSITIVE_INFINITY } = options;
  let failure: ReasonError | undefined;
  let failedPart: string | undefined;
  let sent = 0;
  let answered = 0;
  let definite = true;
  const stopped = () => failure !== undefined || ctx.signal.aborted;

  const give = (points: readonly Point[], reading: BadReading) => {
    for (const { index } of points) readings[index] = reading;
  };

  /** The refusal if it is about these points; all else is settled here. */
  const ask = async (request: Request): Promise<FaultError | undefined> => {
    sent++;
    try {
      const answer = await session.read(request, ctx);
      answered++;
      // Room for all at once: an array that grows leaves several times its size behind.
      if (readings.length === 0) readings.length = memory.width;
      for (let i = 0; i < request.points.length; i++) {
        const point = request.points[i];
        if (point) readings[point.index] = answer[i];
      }
      return undefined;
    } catch (error) {
      const known = toFailure(error);
      if (known instanceof FaultError) {
        answered++;
        if (known.scope === "points") return known;
        definite = false;
        give(request.points, badReading(known));
        if (known.scope === "silent" && request.part !== undefined) demote(memory, request.part, badReading(known), now());
        return undefined;
      }
      if (!failure) failedPart = request.part;
      failure ??= known;
      return undefined;
    }
  };

  const requests = plannedRequests(driver, limits, memory);
  const split = new Map<Request, Part[]>();
  const refused: (readonly [Request, FaultError])[] = [];
  memory.readouts++;

  const silentReading = (request: Request): BadReading | undefined =>
    request.part === undefined ? undefined : memory.silent.get(request.part)?.reading;

  /** Whole requests, `inFlight` at once. Refused ones are kept for later, so that what is well comes first. */
  const askAll = async (list: readonly Request[]): Promise<void> => {
    let cursor = 0;
    const lane = async (): Promise<void> => {
      while (!stopped()) {
        const request = list[cursor++];
        if (!request) return;
        if (isDone(request)) continue;
        const silent = silentReading(request);
        if (silent) {
          give(request.points, silent);
          continue;
        }
        const refusal = await ask(request);
        if (refusal) refused.push([request, refusal]);
      }
    };
    const width = Math.min(limits.inFlight, list.length);
    if (width <= 1) await lane();
    else await Promise.all(Array.from({ length: width }, lane));
  };
  const isDone = ({ points }: Request): boolean => points.every(({ index }) => readings[index] !== undefined);

  const flat = requests.length === 1 ? (requests[0] ?? []) : requests.flat();
  /** Asks one silent part at most, the one that is due for longest, with one small request. Gives whether one was due. */
  const probeSilent = async (quiet: readonly Request[]): Promise<boolean> => {
    const due = [...memory.silent].filter(([, { dueMs }]) => dueMs <= now()).sort(([, a], [, b]) => a.dueMs - b.dueMs);
    const [probed] = due;
    if (!probed) return false;
    if (stopped()) return true;
    const [part, before] = probed;
    const first = quiet.find((request) => request.part === part && !isDone(request));
    const [probe] = first ? driver.plan(first.points.slice(0, 1), limits) : [];
    const refusal = probe && (await ask(probe));
    // Refused is answered too, and so is busy; one that is still silent has been demoted further by now.
    if (!stopped() && memory.silent.get(part) === before) memory.silent.delete(part);
    if (probe && refusal) for (const { index } of probe.points) readings[index] = undefined;
    return true;
  };

  let probing = false;
  if (memory.silent.size === 0) await askAll(flat);
  else {
    const quiet = flat.filter((request) => silentReading(request) !== undefined);
    await askAll(flat.filter((request) => silentReading(request) === undefined));
    probing = await probeSilent(quiet);
    // The rest of a part only if its probe was answered: what is still silent is given its reading.
    await askAll(quiet);
  }

  /** Halves a refused request. The parts keep the order of the points; the last part of each half may touch the first of the next. */
  const search = async (points: readonly Point[]): Promise<Part[]> => {
    const half = points.length >> 1;
    let whole = true;
    const sides: Part[][] = [];
    for (const side of [points.slice(0, half), points.slice(half)]) {
      const parts: Part[] = [];
      for (const request of driver.plan(side, limits)) {
        const part = (outcome: Part["outcome"]): Part => ({ points: request.points, outcome, cutBefore: false });
        if (stopped() || now() >= searchUntilMs) {
          whole = false;
          parts.push(part("unknown"));
          continue;
        }
        const refusal = await ask(request);
        if (stopped()) {
          whole = false;
          parts.push(part(refusal ? "unknown" : isDone(request) ? "good" : "unknown"));
        } else if (!refusal) parts.push(part("good"));
        else {
          whole = false;
          if (request.points.length > 1) parts.push(...(await search(request.points)));
          else {
            for (const point of request.points) refuse(point, refusal);
            parts.push(part("refused"));
          }
        }
      }
      sides.push(parts);
    }
    const [left = [], right = []] = sides;
    // Each half is well and both together are not: what the device lacks lies between them.
    return whole ? [...left, ...right.map((part, i) => (i === 0 ? { ...part, cutBefore: true } : part))] : [...left, ...right];
  };
  const refuse = (point: Point, refusal: FaultError) => {
    readings[point.index] = badReading(refusal);
    refuseLone(memory, point, refusal, now());
  };

  for (const [request, refusal] of refused) {
    if (stopped() || now() >= searchUntilMs) break;
    if (request.points.length > 1) split.set(request, await search(request.points));
    else {
      for (const point of request.points) refuse(point, refusal);
      split.set(request, [{ points: request.points, outcome: "refused", cutBefore: false }]);
    }
  }
  for (const [request, refusal] of failure ? [] : refused)
    for (const { index } of request.points)
      readings[index] ??= {
        quality: "bad",
        fault: "no_answer",
        detail: `refused together with others; which one it is will be found in the next readouts: ${refusal.message}`,
      };

  if (split.size > 0) {
    setGroups(
      memory,
      requests.flatMap((ofGroup) => regroup(ofGroup, split)),
    );
  }
  if (refused.some(([request]) => split.get(request)?.some(({ outcome }) => outcome === "unknown") ?? true)) memory.searching = true;
  else if (memory.searching && !stopped()) {
    // What was only set apart to be looked at later comes together again.
    memory.searching = false;
    startJoining(memory);
  }

  // Points that stand alone: some of them are asked again, the others keep what was said of them.
  const back: Point[] = [];
  for (const point of memory.lone.size === 0 ? [] : loneDue(memory, now())) {
    if (stopped() || now() >= searchUntilMs) break;
    if (readings[point.index] !== undefined) continue;
    for (const request of driver.plan([point], limits)) {
      const silent = silentReading(request);
      const refusal = silent ? undefined : await ask(request);
      if (silent) give(request.points, silent);
      else if (refusal) refuse(point, refusal);
      else if (definite && !stopped()) back.push(point);
    }
  }
  for (const [point, { reading }] of memory.lone) readings[point.index] ??= failure ? undefined : reading;
  for (const point of back) welcome(driver, limits, memory, point);

  // At most one request more than needed, and only in a readout that had nothing else to find out.
  if (refused.length === 0 && !probing && !stopped() && now() < searchUntilMs) {
    const probe = joinProbe(driver, limits, memory, now());
    if (probe) {
      const kept = probe.request.points.map(({ index }) => readings[index]);
      const refusal = await ask(probe.request);
      joined(memory, probe.at, !refusal && !stopped());
      probe.request.points.forEach(({ index }, i) => {
        readings[index] = kept[i];
      });
    }
  }
  return {
    readings,
    failure,
    failedPart,
    parts: failure ? new Set(flat.map(({ part }) => part)).size : 0,
    ranOut: failure === undefined && ctx.signal.aborted && flat.some((request) => !isDone(request)),
    requests: sent,
    answered,
    definite,
  };
}
