import { createInterface } from "node:readline";
import { type AnyDriver, type AnySession, type DriverContext, type Point, type Request, type Tap, typeOf } from "../../drivers/driver.ts";
import { silentLog } from "../../src/model/context.ts";
import type { Reading } from "../../src/model/value.ts";

/** One scan after the other, in a process of its own: no reader pays for what another leaves to be collected. */
export interface Scanner {
  scan(): Promise<unknown>;
  /** Of one more scan, to see that it was right; absent: the device's values change. */
  values?(): Promise<readonly unknown[]>;
  /** For the parent. */
  readonly about: object;
}

/** For each line of input, a number of scans, prints a line of JSON. `sum`: of the values, where the scanner has them. */
export async function serveScans({ scan, values, about }: Scanner, sum: number): Promise<never> {
  for await (const line of createInterface({ input: process.stdin })) {
    const scans = Number(line);
    const [cpu, began] = [process.cpuUsage(), performance.now()];
    for (let i = 0; i < scans; i++) await scan();
    const { user, system } = process.cpuUsage(cpu);
    const measured = { cpuUs: (user + system) / scans, perSecond: (scans * 1000) / (performance.now() - began), ...about };
    const read = (await values?.())?.reduce<number>((total, value) => total + (typeof value === "number" ? value : Number.NaN), 0);
    if (read !== undefined && read !== sum) throw new Error(`the sum ${read} was read instead of ${sum}`);
    console.log(JSON.stringify(measured));
  }
  process.exit(0);
}

interface Planned {
  readonly session: AnySession;
  readonly requests: readonly Request[];
  scan(): Promise<readonly (readonly Reading[])[]>;
}

/** A session of one of our drivers with everything prepared and planned. A tap has every frame copied: not for what is measured. */
export async function openPlanned(
  driver: AnyDriver,
  details: object,
  local: object,
  variables: readonly { readonly address: string; readonly type: string }[],
  tap?: Tap,
): Promise<Planned> {
  const timeouts = { nameMs: 5000, connectMs: 5000, answerMs: 3000 };
  const ctx: DriverContext = { signal: new AbortController().signal, log: silentLog, timeouts, ...(tap && { tap }) };
  const settings = driver.settings.parse(local);
  const input = { details: driver.details.parse(details), settings, secrets: {} };
  const session = await driver.connect(input, ctx);
  const points = variables.map(
    ({ address, type }, index): Point => ({ index, ...driver.parseAddress(address, typeOf(driver, type), settings) }),
  );
  const prepared: Point[] = session.prepare ? [] : points;
  if (session.prepare)
    for await (const batch of session.prepare(points, ctx))
      for (const one of batch) if ("address" in one) prepared.push({ index: one.point.index, address: one.address, type: one.type });
  const requests = driver.plan(prepared, driver.limits?.(session.limits, settings) ?? session.limits);
  return {
    session,
    requests,
    scan: () => scanAll(session, requests, ctx),
  };
}

/** All requests of a plan, as many at once as the session takes. */
async function scanAll(session: AnySession, requests: readonly Request[], ctx: DriverContext): Promise<readonly (readonly Reading[])[]> {
  const { inFlight } = session.limits;
  const readOne = (request: Request): Promise<readonly Reading[]> => session.read(request, ctx);
  if (requests.length <= inFlight) return Promise.all(requests.map(readOne));
  const answers: (readonly Reading[])[] = [];
  for (let at = 0; at < requests.length; at += inFlight)
    answers.push(...(await Promise.all(requests.slice(at, at + inFlight).map(readOne))));
  return answers;
}

export const valuesOf = (answers: readonly (readonly Reading[])[]): readonly unknown[] =>
  answers.flat().map((reading) => (reading.quality === "bad" ? undefined : reading.value));
