import type { AnyDriver, AnySession, DriverContext, Limits, Point, Prepared } from "../../../drivers/driver.ts";
import { FaultError, PartialRefusal } from "../../../src/model/fault.ts";
import type { ReasonError } from "../../../src/model/reason.ts";
import type { Reading } from "../../../src/model/value.ts";

export interface ReadAll {
  /** By point.index. */
  readonly readings: ReadonlyMap<number, Reading>;
  readonly failure: ReasonError | undefined;
}

/** The points that can be planned, and the readings of the others. Throws what the driver throws. */
export async function prepareAll(
  session: AnySession,
  points: readonly Point[],
  ctx: DriverContext,
): Promise<{ readonly ready: Point[]; readonly refused: ReadonlyMap<number, Reading> }> {
  if (!session.prepare) return { ready: [...points], refused: new Map() };
  const batches: Prepared[] = [];
  for await (const batch of session.prepare(points, ctx)) batches.push(...batch);
  const refused = new Map<number, Reading>();
  const ready = batches.flatMap((one) => {
    const { index } = one.point;
    if ("address" in one) return [{ ...one.point, index, address: one.address, type: one.type }];
    refused.set(index, { quality: "bad", fault: one.refusal.fault, detail: one.refusal.message });
    return [];
  });
  return { ready: ready.sort((a, b) => a.index - b.index), refused };
}

/** The least that an agent does: prepare, plan, read one request after the other, and halve what is refused. Apart from the agent's own. */
export async function readAll(driver: AnyDriver, session: AnySession, points: readonly Point[], ctx: DriverContext): Promise<ReadAll> {
  try {
    const { ready, refused } = await prepareAll(session, points, ctx);
    const { readings, failure } = await readPrepared(driver, session, ready, ctx);
    return { readings: new Map([...refused, ...readings]), failure };
  } catch (error) {
    if (!(error instanceof FaultError)) return { readings: new Map(), failure: error as ReasonError };
    const refusal: Reading = { quality: "bad", fault: error.fault, detail: error.message };
    return { readings: new Map(points.map(({ index }) => [index, refusal])), failure: undefined };
  }
}

/** Works as `readAll` does, of points that are prepared. */
export async function readPrepared(
  driver: AnyDriver,
  session: AnySession,
  points: readonly Point[],
  ctx: DriverContext,
  limits: Limits = session.limits,
): Promise<ReadAll> {
  const readings = new Map<number, Reading>();
  const queue = driver.plan(points, limits);
  for (let request = queue.shift(); request; request = queue.shift()) {
    try {
      const answer = await session.read(request, ctx);
      if (answer.length !== request.points.length) throw new Error(`${answer.length} readings for ${request.points.length} points`);
      for (const [i, reading] of answer.entries()) readings.set(request.points[i]?.index ?? -1, reading);
    } catch (error) {
      if (!(error instanceof FaultError)) return { readings, failure: error as ReasonError };
      const { points: asked } = request;
      if (error instanceof PartialRefusal)
        for (const [i, reading] of error.readings.entries()) if (reading) readings.set(asked[i]?.index ?? -1, reading);
      const runs = error instanceof PartialRefusal ? error.items.map(({ places }) => places.flatMap((at) => asked[at] ?? [])) : [asked];
      for (const run of runs) {
        const half = run.length >> 1;
        if (half > 0) queue.push(...driver.plan(run.slice(0, half), limits), ...driver.plan(run.slice(half), limits));
        else for (const { index } of run) readings.set(index, { quality: "bad", fault: error.fault, detail: error.message });
      }
    }
  }
  return { readings, failure: undefined };
}
