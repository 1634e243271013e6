import { expect, onTestFinished, test } from "vitest";
import { clock } from "../../test/support/agent.ts";
import { freePort } from "../../test/support/free-port.ts";
import type { Clock } from "../model/clock.ts";
import { runDelivery } from "./engine.ts";
import type { FromDelivery } from "./messages.ts";
import { mqttSpec, workerOf } from "./testing/rig.ts";

const DAY_MS = 86_400_000;
const WITHIN_MS = 60_000;

test.each([
  ["from 1970 to the right time", -20_783 * DAY_MS, 0],
  ["two hours back", 0, -7_200_000],
])("a clock that is set %s moves the times of a sink's state along, in what the delivery reports by itself", async (_, fromMs, toMs) => {
  let offMs = fromMs;
  const set: Clock = { ...clock, epochMs: () => clock.epochMs() + offMs };
  const options = { clock: set };
  const delivery = workerOf<FromDelivery>((port) => runDelivery(port, options));
  onTestFinished(async () => {
    delivery.port.postMessage({ type: "shutdown" });
    await expect.poll(delivery.isClosed, { timeout: 5000 }).toBe(true);
  });
  const sinks = () => delivery.told.filter((message) => message.type === "report").at(-1)?.sinks ?? [];
  const specs = [mqttSpec(await freePort(), { uuid: "gone" }), mqttSpec(1, { uuid: "unusable", type: "none" })];
  for (const sink of specs) delivery.port.postMessage({ type: "start", sink });
  await expect.poll(() => sinks().map(({ state }) => state), { timeout: 5000 }).toEqual(["ERROR", "ERROR"]);
  offMs = toMs;
  const offBy = (time: string | null | undefined) => Math.abs(set.epochMs() - Date.parse(time ?? ""));
  const times = () => sinks().flatMap(({ uuid, since, next_retry_at: retryAt }) => (uuid === "gone" ? [since, retryAt] : [since]));
  await expect.poll(() => times().map((time) => offBy(time) < WITHIN_MS), { timeout: 5000 }).toEqual([true, true, true]);
});
