import type { AnyDriver, AnySession, DriverContext, Point } from "../../../drivers/driver.ts";
import { FaultError } from "../../../src/model/fault.ts";
import type { ReasonError } from "../../../src/model/reason.ts";
import type { Reading } from "../../../src/model/value.ts";

export interface ReadAll {
  /** By point.index. */
  readonly readings: ReadonlyMap<number, Reading>;
  readonly failure: ReasonError | undefined;
}

/** The least that an agent does: plan, read one request after the other, and halve what the device refuses. Apart from the agent's own. */
export async function readAll(driver: AnyDriver, session: AnySession, points: readonly Point[], ctx: DriverContext): Promise<ReadAll> {
  const readings = new Map<number, Reading>();
  const queue = driver.plan(points, session.limits);
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
