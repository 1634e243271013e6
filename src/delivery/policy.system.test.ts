import { expect, onTestFinished, test } from "vitest";
import { startBroker } from "../../test/support/broker.ts";
import { policySchema } from "../model/policy.ts";
import { mqttSpec, startRig } from "./testing/rig.ts";

const within = <T>(look: () => T) => expect.poll(look, { timeout: 10_000, interval: 10 });

test("another policy ends the sink that it closes, loses nothing of it, begins it at once when it is opened, and touches no other", async () => {
  const [closing, staying] = [await startBroker(), await startBroker()];
  const closed = new Set<number>();
  const rig = await startRig({}, { permit: (address, port) => (closed.has(port) ? `port ${port} of ${address} is closed` : undefined) });
  onTestFinished(async () => {
    closing.hold(false);
    await rig.stop();
    await Promise.all([closing.stop(), staying.stop()]);
  });
  const changed = (): void => rig.ask({ type: "policy", policy: policySchema.parse({}) });
  rig.start(mqttSpec(closing.port), mqttSpec(staying.port, { uuid: "sink-2", name: "staying" }));
  rig.append(10);
  await within(() => [rig.sink()?.delivered, rig.sink("sink-2")?.delivered]).toEqual([40, 40]);
  const [before, kept] = [closing.connections(), staying.connections()];

  // With publishes under way, which are not the cause.
  closing.hold(true);
  rig.append(10);
  await within(() => closing.held()).toBeGreaterThan(0);
  closed.add(closing.port);
  changed();
  await within(() => rig.report()?.error).toMatchObject({ condition: "forbidden_by_policy", detail: expect.stringContaining("is closed") });
  closing.hold(false);
  rig.append(10);
  await within(() => rig.sink("sink-2")?.delivered).toBe(120);
  // Until the next try is some seconds away.
  await expect
    .poll(() => Date.parse(rig.report()?.next_retry_at ?? "") - Date.now(), { timeout: 25_000, interval: 50 })
    .toBeGreaterThan(1500);
  const dueMs = Date.parse(rig.report()?.next_retry_at ?? "");
  expect(closing.connections()).toBe(before);

  closed.delete(closing.port);
  changed();
  await within(() => rig.sink()).toMatchObject({ accepted: 120, delivered: 120, pending: 0, dropped: {} });
  expect(Date.now()).toBeLessThan(dueMs);
  expect(rig.report()).toMatchObject({ state: "OK", error: null });
  expect(staying.connections()).toBe(kept);
}, 60_000);

test("a policy that says the same of a sink changes nothing for it", async () => {
  const broker = await startBroker();
  const rig = await startRig({}, { permit: () => undefined });
  onTestFinished(async () => {
    await rig.stop();
    await broker.stop();
  });
  rig.start(mqttSpec(broker.port));
  rig.append(1);
  await within(() => rig.sink()?.delivered).toBe(4);
  const before = broker.connections();
  rig.ask({ type: "policy", policy: policySchema.parse({ discovery: false }) });
  rig.append(1);
  await within(() => rig.sink()?.delivered).toBe(8);
  expect(broker.connections()).toBe(before);
});
