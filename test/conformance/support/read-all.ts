import type { AnyDriver, AnySession, DriverContext, Point } from "../../../drivers/driver.ts";
import { FaultError } from "../../../src/model/fault.ts";
import type { ReasonError } from "../../../src/model/reason.ts";
import type { Reading } from "../../../src/model/value.ts";

export interface ReadAll {
  /** By point.index. */
  readonly readings: ReadonlyMap<number, Reading>;
  readonly failure: ReasonError | undefined;
}

/** The least that an agent does: prepare, plan, read one request after the other, and halve what the device refuses. Apart from the agent's own. */
export async function readAll(driver: AnyDriver, session: AnySession, points: readonly Point[], ctx: DriverContext): Promise<ReadAll> {
  const readings = new Map<number, Reading>();
  let ready: readonly Point[];
  try {
    ready = await prepareAll(session, points, ctx, readings);
  } catch (error) {
    return { readings, failure: error as ReasonError };
  }
  const queue = driver.plan(ready, session.limits);
  for (let request = queue.shift(); request; request = queue.shift()) {
    try {
      const answer = await session.read(request, ctx);
      if (answer.length !== request.points.length) throw new Error(`${answer.length} readings for ${request.points.length} points`);
      for (const [i, reading] of answer.entries()) readings.set(request.points[i]?.index ?? -1, reading);
    } catch (error) {
      if (!(error instanceof FaultError)) return { readings, failure: error as ReasonError };
      const half = request.points.length >> 1;
      if (half > 0) {
        queue.push(
          ...driver.plan(request.points.slice(0, half), session.limits),
          ...driver.plan(request.points.slice(half), session.limits),
        );
        continue;
      }
      for (const { index } of request.points) readings.set(index, { quality: "bad", fault: error.fault, detail: error.message });
    }
  }
  return { readings, failure: undefined };
}

/** The points to plan; what cannot be planned has its reading. */
export async function prepareAll(
  session: AnySession,
  points: readonly Point[],
  ctx: DriverContext,
  readings: Map<number, Reading>,
): Promise<readonly Point[]> {
  if (!session.prepare) return points;
  const ready: Point[] = [];
  for await (const batch of session.prepare(points, ctx))
    for (const one of batch) {
      const { index } = one.point;
      if ("refusal" in one) readings.set(index, { quality: "bad", fault: one.refusal.fault, detail: one.refusal.message });
      else ready.push({ index, address: one.address, type: one.type });
    }
  return ready.sort((a, b) => a.index - b.index);
}
