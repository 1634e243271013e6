import { describe, expect, it } from "vitest";
import type { AnyDriver, AnySession, DriverContext, Point } from "../../drivers/driver.ts";
import { silentLog } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import { LearnedGroups } from "./learned-groups.ts";
import { readOnce } from "./read.ts";

const ctx: DriverContext = {
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 1, connectMs: 1, answerMs: 1 },
};
const points: readonly Point[] = [{ index: 0, address: 1, type: { scalar: "uint16" } }];
const driver = { plan: (some: readonly Point[]) => some.map((point) => ({ points: [point] })) } as unknown as AnyDriver;
const ended = new ReasonError("CONNECTION_CLOSED", "the device closed the connection");

function sessionOf(): AnySession & { end(): void } {
  let isAlive = true;
  return {
    limits: { maxPoints: 1, maxBytes: 1, inFlight: 1 },
    read: async () => [{ quality: "good", value: 7 }],
    alive: () => isAlive,
    close: async () => {
      isAlive = false;
    },
    end() {
      isAlive = false;
    },
  };
}

/** One pass; `look` is what looking up does with each session. */
async function readWith(look: (session: ReturnType<typeof sessionOf>, nth: number) => boolean, kept?: ReturnType<typeof sessionOf>) {
  let connects = 0;
  let looks = 0;
  const sessions = new Map<AnySession, ReturnType<typeof sessionOf>>();
  const known = (session: ReturnType<typeof sessionOf>) => {
    sessions.set(session, session);
    return session;
  };
  if (kept) known(kept);
  const connect = async () => {
    connects++;
    return known(sessionOf());
  };
  const prepare = async (session: AnySession) => look(sessions.get(session) ?? sessionOf(), looks++);
  const { readings, failure } = await readOnce({ driver, connect, prepare }, new LearnedGroups(points), kept, ctx);
  return { readings, reason: failure?.reason.type, connects };
}

describe("looking addresses up before a pass", () => {
  const good = [{ quality: "good", value: 7 }];

  it("goes on over a new connection where the kept one has ended meanwhile", async () => {
    const look = (_: AnySession, nth: number) => {
      if (nth === 0) throw ended;
      return true;
    };
    expect(await readWith(look, sessionOf())).toEqual({ readings: good, reason: undefined, connects: 1 });
  });

  it("fails the pass where a new connection ends", async () => {
    const look = () => {
      throw ended;
    };
    expect(await readWith(look)).toMatchObject({ reason: "CONNECTION_CLOSED", connects: 1 });
    expect(await readWith(look, sessionOf())).toMatchObject({ reason: "CONNECTION_CLOSED", connects: 1 });
  });

  it("reads over a new connection where the one ended with the time for looking up", async () => {
    const look = (session: ReturnType<typeof sessionOf>, nth: number) => {
      if (nth === 0) session.end();
      return nth === 0;
    };
    expect(await readWith(look)).toEqual({ readings: good, reason: undefined, connects: 2 });
  });
});
