import fc from "fast-check";
import { expect } from "vitest";
import type { Point, Request } from "../../drivers/driver.ts";
import { typeOf as typeOfWord } from "../../drivers/driver.ts";
import { FaultError, PartialRefusal } from "../../src/model/fault.ts";
import { MAX_COUNT, type Reading, SCALAR_TYPES } from "../../src/model/value.ts";
import type { Check } from "./check.ts";
import { type Rig, reasonOf, SECRET, within } from "./rig.ts";
import type { RangeDevice } from "./subjects.ts";
import { prepareAll } from "./support/read-all.ts";

const PLANS = 20;
const LONGEST_DESCRIPTION = 200;

const unaskedOfRanges = async ({ traits: { ranges } }: Rig) => (typeof ranges === "string" ? ranges : undefined);

/** A device that can lack what lies between variables, a session with it, and all its points, prepared. */
async function onRanges(
  rig: Rig,
  work: (device: RangeDevice, session: Awaited<ReturnType<Rig["connect"]>>, points: readonly Point[]) => Promise<void>,
): Promise<void> {
  const { ranges } = rig.traits;
  if (typeof ranges === "string") throw new Error(ranges);
  const device = await ranges();
  try {
    const session = await rig.connect(within(10_000), device.port);
    const { ready } = await prepareAll(session, rig.pointsOf(device.variables), within(5000));
    expect(ready).toHaveLength(device.variables.length);
    await work(device, session, ready);
    await session.close();
  } finally {
    await device.close();
  }
}

/** What was read, by index, and what was refused. */
async function readEach(
  session: Awaited<ReturnType<Rig["connect"]>>,
  requests: readonly Request[],
): Promise<{ readonly readings: ReadonlyMap<number, Reading>; readonly refusals: readonly { request: Request; error: FaultError }[] }> {
  const readings = new Map<number, Reading>();
  const refusals: { request: Request; error: FaultError }[] = [];
  for (const request of requests)
    try {
      for (const [i, reading] of (await session.read(request, within(5000))).entries())
        readings.set(request.points[i]?.index ?? -1, reading);
    } catch (error) {
      if (!(error instanceof FaultError)) throw error;
      refusals.push({ request, error });
    }
  return { readings, refusals };
}

/** True: a field of a request can be part of what is sent: not functions and offsets, which belong to its answer. */
const isAsked = (field: unknown): boolean =>
  !ArrayBuffer.isView(field) && !(Array.isArray(field) && field.some((one) => typeof one === "function"));

/** The contract's finer points. */
export const CONTRACT_CHECKS: readonly Check[] = [
  {
    name: "lets nothing that is refused as one hold a point of `apart` with points before it",
    unasked: unaskedOfRanges,
    async run(rig) {
      const { driver } = rig;
      await onRanges(rig, async (device, session, points) => {
        const { limits } = session;
        // Without `apart` the range goes over what the device lacks: else this proves nothing.
        device.lack([1]);
        const { refusals } = await readEach(session, driver.plan(points, limits));
        expect(refusals.length, "refusals of a range with a hole").toBeGreaterThan(0);
        const places = points.map((_, i) => i).slice(1);
        await fc.assert(
          fc.asyncProperty(
            fc.subarray(places, { minLength: 1 }),
            fc.shuffledSubarray([...points], { minLength: points.length }),
            async (holes, shuffled) => {
              device.lack(holes);
              const apart = new Set(points.filter((_, i) => holes.includes(i)));
              const requests = driver.plan(shuffled, limits, apart);
              expect(requests.flatMap((request) => request.points.map(({ index }) => index)).sort((a, b) => a - b)).toEqual(
                points.map(({ index }) => index),
              );
              const answer = await readEach(session, requests);
              expect(answer.refusals.map(({ error }) => error.message)).toEqual([]);
              for (const [i, { value }] of device.variables.entries())
                expect(answer.readings.get(i)).toMatchObject({ quality: "good", value });
            },
          ),
          { numRuns: PLANS },
        );
      });
    },
  },
  {
    name: "names in a partial refusal places of the request, and only those that were refused",
    async unasked({ traits: { items } }) {
      return items === true ? undefined : items;
    },
    async run(rig) {
      const { driver } = rig;
      await onRanges(rig, async (device, session, points) => {
        const partial: PartialRefusal[] = [];
        for (let hole = 1; hole < points.length; hole++) {
          device.lack([hole]);
          const { refusals } = await readEach(session, driver.plan(points, session.limits));
          for (const { request, error } of refusals) {
            if (!(error instanceof PartialRefusal)) continue;
            partial.push(error);
            await expectExact(request, error);
          }
        }
        expect(partial.length, "partial refusals").toBeGreaterThan(0);

        async function expectExact({ points: asked }: Request, { items, readings }: PartialRefusal): Promise<void> {
          const places = items.flatMap((item) => item.places);
          for (const { places: some, refusal } of items) {
            expect(some.length).toBeGreaterThan(0);
            expect(refusal).toMatchObject({ name: "FaultError", scope: "points" });
          }
          expect(new Set(places).size, `places ${places} are named once each`).toBe(places.length);
          for (const place of places) expect(asked[place], `place ${place} of ${asked.length}`).toBeDefined();
          expect(readings).toHaveLength(asked.length);
          for (const [i, { index }] of asked.entries())
            if (places.includes(i)) expect(readings[i], `place ${i}`).toBeUndefined();
            else expect(readings[i], `place ${i}`).toMatchObject({ quality: "good", value: device.variables[index]?.value });
          expect(places.length, "the others were answered").toBeLessThan(asked.length);
          // Each is refused as one when it is asked by itself too.
          for (const item of items) {
            const run = item.places.flatMap((place) => asked[place] ?? []);
            const alone = await readEach(session, driver.plan(run, session.limits));
            const [refusal, ...more] = alone.refusals;
            expect(more, `the places ${item.places} are in one request`).toEqual([]);
            expect(refusal?.error, `the places ${item.places} alone`).toBeInstanceOf(FaultError);
            expect(refusal?.error, `the places ${item.places} alone`).not.toBeInstanceOf(PartialRefusal);
          }
        }
      });
    },
  },
  {
    name: "says of a refusal of everything, and of a busy device, what it is about",
    async unasked({ simulator: { isLocked } }) {
      return isLocked === undefined ? "its simulator refuses no one thing after the other" : undefined;
    },
    async run({ driver, connect, pointsOf, simulator, proxy, traits: { lockedReason } }) {
      let session = await connect();
      const sentBytes = () => proxy.sent().reduce((bytes, { length }) => bytes + length, 0);
      const { ready } = await prepareAll(session, pointsOf(simulator.variables), within(5000));
      const before = sentBytes();
      await prepareAll(session, ready, within(5000));
      const asksToPrepare = sentBytes() > before;
      const [request] = driver.plan(ready, session.limits);
      if (!request) throw new Error("nothing is planned");
      const scopeOf = async (work: Promise<unknown>) => {
        const error = await work.then(
          () => undefined,
          (caught: unknown) => caught,
        );
        expect(error).toBeInstanceOf(FaultError);
        return (error as FaultError).scope;
      };
      simulator.isLocked = true;
      try {
        if (lockedReason !== undefined) {
          expect(await reasonOf(session.read(request, within(5000)))).toBe(lockedReason);
          expect(await reasonOf(connect())).toBe(lockedReason);
        } else expect(await scopeOf(session.read(request, within(5000)))).toBe("everything");
        if (lockedReason === undefined && asksToPrepare) expect(await scopeOf(prepareAll(session, ready, within(5000)))).toBe("everything");
      } finally {
        simulator.isLocked = false;
      }
      if (lockedReason !== undefined) {
        await session.close();
        session = await connect();
      }
      simulator.isBusy = true;
      try {
        expect(await scopeOf(session.read(request, within(5000)))).toBe("busy");
      } finally {
        simulator.isBusy = false;
      }
      expect(await session.read(request, within(5000))).toHaveLength(request.points.length);
      await session.close();
    },
  },
  {
    name: "describes a request in one line, each another, without a secret",
    async unasked({ driver }) {
      return driver.describe ? undefined : "its requests are named by their variables";
    },
    async run({ driver, connect, pointsOf, simulator }) {
      const session = await connect();
      const { ready } = await prepareAll(session, pointsOf(simulator.variables), within(5000));
      await session.close();
      for (const maxPoints of [1, 3, session.limits.maxPoints]) {
        const requests = driver.plan(ready, { ...session.limits, maxPoints });
        const words = requests.map((request) => driver.describe?.(request) ?? "");
        const spans = requests.map(({ points: _, ...rest }) => JSON.stringify(Object.entries(rest).filter(([, field]) => isAsked(field))));
        for (const [i, text] of words.entries()) {
          expect(text).toMatch(/^\S.*\S$/);
          expect(text.length).toBeLessThanOrEqual(LONGEST_DESCRIPTION);
          expect(text).not.toContain(SECRET);
          const request = requests[i];
          expect(request && driver.describe?.(request)).toBe(text);
        }
        // Two points on one span make the same request, however their values are taken from the answer.
        expect(new Set(words).size).toBeGreaterThanOrEqual(Math.min(requests.length, new Set(spans).size));
      }
    },
  },
  {
    name: "knows its own words for types, refuses others, and never fails over one",
    async run({ driver, traits: { typeWords } }) {
      const own = typeof typeWords === "string" ? {} : typeWords;
      if (typeof typeWords !== "string") expect(driver.parseType, "parseType").toBeDefined();
      for (const [word, type] of Object.entries(own)) expect(typeOfWord(driver, word), word).toEqual(type);
      for (const scalar of SCALAR_TYPES) expect(typeOfWord(driver, scalar), scalar).toEqual({ scalar });
      const near = fc.oneof(
        fc.string(),
        fc
          .tuple(
            fc.constantFrom("REAL", "string(4)", ...Object.keys(own)),
            fc.nat(8),
            fc.constantFrom("9", "[", "]", "(", "0", "-", " ", "\0", "ü", ""),
          )
          .map(([word, at, inserted]) => word.slice(0, at) + inserted + word.slice(at)),
        fc
          .tuple(fc.constantFrom("BCD", "REAL", ...Object.keys(own)), fc.integer({ min: -1, max: 99_999 }))
          .map(([word, n]) => `${word}[${n}]`),
      );
      fc.assert(
        fc.property(near, (text) => {
          const type = typeOfWord(driver, text);
          expect(typeOfWord(driver, text)).toEqual(type);
          if (type === undefined) return;
          expect([...SCALAR_TYPES, "auto"]).toContain(type.scalar);
          for (const size of [type.count, type.maxBytes])
            if (size !== undefined) expect(Number.isInteger(size) && size >= 1 && size <= MAX_COUNT, `${text}: ${size}`).toBe(true);
        }),
        { numRuns: 1000 },
      );
      for (const text of ["", " ", "S5", "WSTRING[", "BCD[0]", "BCD[65536]", "constructor", "__proto__"])
        expect(typeOfWord(driver, text), text).toBeUndefined();
    },
  },
];
