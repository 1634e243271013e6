import { expect, test } from "vitest";
import { clock, plant, running, source } from "../../test/support/agent.ts";
import { freePort } from "../../test/support/free-port.ts";
import type { Clock } from "../model/clock.ts";

const DAY_MS = 86_400_000;
const WITHIN_MS = 60_000;

/** A clock that is off by `offMs`, until somebody sets it. */
function wrongClock(offMs: number) {
  const set = { offMs };
  const wrong: Clock = { ...clock, epochMs: () => clock.epochMs() + set.offMs };
  return { set, wrong };
}

test.each([
  ["from 1970 to the right time", -20_783 * DAY_MS, 0],
  ["two hours back", 0, -7_200_000],
  ["a day forward", 0, DAY_MS],
])(
  "a clock that is set %s moves the times of a source's state along, so that its outage lasts as long as it does",
  async (_, fromMs, toMs) => {
    const { set, wrong } = wrongClock(fromMs);
    const device = await plant({});
    const { agent, report } = running({ clock: wrong });
    await agent.apply([source(1, await freePort()), source(2, device.port)]);
    await expect.poll(() => [1, 2].map((n) => report(n)?.status.state.type), { timeout: 5000 }).toEqual(["ERROR", "OK"]);
    set.offMs = toMs;
    const ages = [1, 2].flatMap((n) => {
      const { since = "", status, next_retry_at: retryAt } = report(n) ?? {};
      const times =
        status?.state.type === "ERROR" ? [since, status.state.error_at, retryAt ?? since] : [since, status?.last_readout_at ?? ""];
      return times.map((time) => wrong.epochMs() - Date.parse(time));
    });
    expect(ages).toHaveLength(5);
    for (const age of ages) expect(Math.abs(age)).toBeLessThan(WITHIN_MS);
    for (const age of [ages[0], ages[1], ages[3]]) expect(age).toBeGreaterThanOrEqual(-1);
  },
);
