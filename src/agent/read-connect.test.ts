import { describe, expect, it } from "vitest";
import type { DriverContext } from "../../drivers/driver.ts";
import { silentLog } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import { DeviceTime } from "./device-time.ts";
import { type ReadDeps, readOnce } from "./read.ts";
import { Cells } from "./testing/cells.ts";

const ctx: DriverContext = {
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 1000, connectMs: 1000, answerMs: 1000 },
};

/** A readout whose connects have no answer, each 500 ms after `other` had none where that is given. */
async function failing(hasOther: boolean) {
  const cells = new Cells([1, 2, 3]);
  let nowMs = 0;
  const time = new DeviceTime(() => nowMs);
  const [other, own] = [time.join(1000), time.join(1000)];
  for (const share of [other, own]) share.answered(5);
  nowMs += 1000;
  if (hasOther) other.probed(500, "surprise");
  const calls: string[] = [];
  const deps: ReadDeps = {
    driver: cells.driver,
    async connect() {
      calls.push("connect");
      nowMs += 500;
      own.probed(500, "surprise");
      throw new ReasonError("TIMEOUT", "no answer within 500 ms");
    },
    async passOn() {
      calls.push("pass on");
      return undefined;
    },
  };
  const { refused, failure } = await readOnce(deps, cells.learned, undefined, ctx, { share: own, now: () => nowMs });
  return { calls, reason: refused?.reason.type, failure };
}

describe("a connection that has no answer while it is opened", () => {
  it("is opened once more after the others, where another had no answer before: a gateway may have been busy with that", async () => {
    const { calls, reason, failure } = await failing(true);
    expect(calls).toEqual(["connect", "pass on", "connect"]);
    expect([reason, failure?.reason.type]).toEqual(["TIMEOUT", "TIMEOUT"]);
  });

  it("ends the readout where the silence is its own", async () => {
    expect((await failing(false)).calls).toEqual(["connect"]);
  });
});
