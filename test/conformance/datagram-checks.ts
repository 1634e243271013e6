import { expect } from "vitest";
import { FaultError } from "../../src/model/fault.ts";
import { type Check, expectAllGood, misbehaving } from "./check.ts";
import { within } from "./rig.ts";
import { prepareAll, readAll, readPrepared } from "./support/read-all.ts";

const only = { transport: "udp", why: "a stream loses, doubles and reorders nothing" } as const;

const ROUGH = [
  ["lost", "are lost once"],
  ["doubled", "come twice, the second time late"],
  ["shuffled", "come in another order"],
  ["garbage", "come among others that answer nothing"],
] as const;

/** What only holds of drivers over datagrams. */
export const DATAGRAM_CHECKS: readonly Check[] = [
  ...ROUGH.map(
    ([fault, words]): Check => ({
      name: `reads the same where datagrams ${words}`,
      only,
      async run(rig) {
        const { driver, connect, pointsOf, simulator } = rig;
        const session = await misbehaving(rig, fault, () => connect(within(5000, 600)));
        const { readings, failure } = await misbehaving(rig, fault, () =>
          readAll(driver, session, pointsOf(simulator.variables), within(10_000, 600)),
        );
        expect(failure).toBeUndefined();
        expectAllGood(rig, readings);
        await session.close();
      },
    }),
  ),
  {
    name: "gives each of several requests under way its own answer, in whatever order datagrams come",
    only,
    async run(rig) {
      const { driver, connect, pointsOf, simulator } = rig;
      const session = await connect();
      const { ready } = await prepareAll(session, pointsOf(simulator.variables), within(5000));
      const requests = driver.plan(ready, { ...session.limits, maxPoints: 1 });
      // A driver with one request under way has them one after the other.
      const { inFlight } = session.limits;
      const readings = new Map<number, { readonly quality: string }>();
      await misbehaving(rig, "shuffled", async () => {
        for (let at = 0; at < requests.length; at += inFlight)
          await Promise.all(
            requests.slice(at, at + inFlight).map(async (request) => {
              const [reading] = await session.read(request, within(5000));
              if (reading) readings.set(request.points[0]?.index ?? -1, reading);
            }),
          );
      });
      await session.close();
      for (const [index, { address, value }] of simulator.variables.entries())
        expect(readings.get(index), address).toMatchObject({ quality: "good", value });
    },
  },
  {
    name: "names a device that is gone, CONNECTION_REFUSED, and reads again when it is back",
    only: { transport: "udp", why: "a stream that goes is cut or reset" },
    async run(rig) {
      const { driver, connect, pointsOf, simulator } = rig;
      const session = await connect();
      const { ready } = await prepareAll(session, pointsOf(simulator.variables), within(5000));
      const { failure } = await misbehaving(rig, "gone", () => readPrepared(driver, session, ready, within(5000)));
      expect(failure).not.toBeInstanceOf(FaultError);
      expect(failure?.reason.type).toBe("CONNECTION_REFUSED");
      const next = session.alive() ? session : await connect();
      const { readings } = await readAll(driver, next, pointsOf(simulator.variables), within(5000));
      expectAllGood(rig, readings);
      await session.close();
      await next.close();
    },
  },
  {
    name: "reads on over the same socket after a time-out",
    only: { transport: "udp", why: "a late answer cannot be told from the next one on every stream" },
    async run(rig) {
      const { driver, connect, pointsOf, simulator } = rig;
      const session = await connect();
      const { ready } = await prepareAll(session, pointsOf(simulator.variables), within(5000));
      const { failure } = await misbehaving(rig, "silent", () => readPrepared(driver, session, ready, within(5000, 100)));
      expect(failure?.reason.type).toBe("TIMEOUT");
      expect(session.alive()).toBe(true);
      const { readings } = await readPrepared(driver, session, ready, within(5000));
      expectAllGood(rig, readings);
      await session.close();
    },
  },
];
