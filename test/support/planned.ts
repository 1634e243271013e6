import { type AnyDriver, type AnySession, type DriverContext, type Point, type Request, type Tap, typeOf } from "../../drivers/driver.ts";
import { silentLog } from "../../src/model/context.ts";
import type { Reading } from "../../src/model/value.ts";

/** A session of one of our drivers with everything prepared and planned. */
export interface Planned {
  readonly session: AnySession;
  readonly requests: readonly Request[];
  /** All requests of the plan, as many at once as the session takes. */
  scan(): Promise<readonly (readonly Reading[])[]>;
  /** Of one scan, in the order of the variables; undefined: it is not good. */
  values(): Promise<readonly unknown[]>;
}

/** `type` undefined: as the driver says. A tap has every frame copied: not for what is measured. Throws where a variable has no type of the driver's. */
export async function openPlanned(
  driver: AnyDriver,
  details: object,
  local: object,
  variables: readonly { readonly address: string; readonly type?: string }[],
  tap?: Tap,
): Promise<Planned> {
  const timeouts = { nameMs: 5000, connectMs: 5000, answerMs: 5000 };
  const ctx: DriverContext = { signal: new AbortController().signal, log: silentLog, timeouts, ...(tap && { tap }) };
  const settings = driver.settings.parse(local);
  const session = await driver.connect({ details: driver.details.parse(details), settings, secrets: {} }, ctx);
  const points = variables.map(({ address, type }, index): Point => {
    const wanted = type === undefined ? undefined : typeOf(driver, type);
    if (type !== undefined && !wanted) throw new TypeError(`${type} is not a type of ${driver.type}`);
    return { index, ...driver.parseAddress(address, wanted, settings) };
  });
  const prepared: Point[] = session.prepare ? [] : points;
  if (session.prepare)
    for await (const batch of session.prepare(points, ctx))
      for (const one of batch) if ("address" in one) prepared.push({ index: one.point.index, address: one.address, type: one.type });
  const requests = driver.plan(prepared, driver.limits?.(session.limits, settings) ?? session.limits);
  const scan = () => scanAll(session, requests, ctx);
  return {
    session,
    requests,
    scan,
    async values() {
      const answers = await scan();
      const values: unknown[] = points.map(() => undefined);
      for (const [at, { points: read }] of requests.entries())
        for (const [i, { index }] of read.entries()) {
          const reading = answers[at]?.[i];
          values[index] = reading && reading.quality !== "bad" ? reading.value : undefined;
        }
      return values;
    },
  };
}

async function scanAll(session: AnySession, requests: readonly Request[], ctx: DriverContext): Promise<readonly (readonly Reading[])[]> {
  const { inFlight } = session.limits;
  const readOne = (request: Request): Promise<readonly Reading[]> => session.read(request, ctx);
  if (requests.length <= inFlight) return Promise.all(requests.map(readOne));
  const answers: (readonly Reading[])[] = [];
  for (let at = 0; at < requests.length; at += inFlight)
    answers.push(...(await Promise.all(requests.slice(at, at + inFlight).map(readOne))));
  return answers;
}
