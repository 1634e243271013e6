import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connack5, puback, startRawBroker, topicOf } from "../../../test/support/raw-broker.ts";
import { sourceReport } from "../../../test/support/source-report.ts";
import { mqttSpec, startRig } from "../../delivery/testing/rig.ts";
import { silentLog } from "../../model/context.ts";
import { openMemory } from "./memory.ts";

const CONNECT = 1;
const PUBLISH = 3;

test("the rate is known again after a restart, at the same endpoint alone, until the sink is removed", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "limits-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const memoryAt = (endpoint: string) => openMemory({ folder, uuid: "u", endpoint, log: silentLog });
  const first = memoryAt("h:1");
  for (let i = 0; i < 50; i++) first.rate.accepted(1000);
  first.rate.exceeded(1000, 1000, true);
  // A process that is killed closes nothing.
  expect(memoryAt("h:1").rate.state()).toEqual({ perS: 40, isLearned: true });
  expect(memoryAt("h:2").rate.state()).toBeUndefined();
  first.close(true);
  expect(memoryAt("h:1").rate.state()).toBeUndefined();
});

test("after an end for the rate only what has changed is published again, and no value is suspected", async () => {
  const topics: string[][] = [];
  let ends = true;
  const broker = await startRawBroker((packet, socket) => {
    if (packet.type === CONNECT) {
      topics.push([]);
      socket.write(connack5(0));
    }
    if (packet.type !== PUBLISH) return;
    topics.at(-1)?.push(topicOf(packet));
    if (topicOf(packet) === "plant/values" && ends) socket.end(Buffer.from([0xe0, 1, 150]));
    else socket.write(puback(packet));
  });
  onTestFinished(() => broker.stop());
  const rig = await startRig();
  onTestFinished(() => rig.stop());
  rig.ask({ type: "sources", sources: [sourceReport("a"), sourceReport("b")] });
  rig.start(mqttSpec(broker.port));
  await expect.poll(() => topics[0]?.length, { timeout: 10_000 }).toBe(3);
  rig.append(1);
  await expect.poll(() => topics.length, { timeout: 30_000 }).toBeGreaterThanOrEqual(4);
  ends = false;
  await expect.poll(() => rig.sink(), { timeout: 30_000 }).toMatchObject({ accepted: 4, delivered: 4, dropped: {} });
  // A suspect would wait for half a second and for nothing else under way.
  for (const later of topics.slice(1)) expect(later).toEqual(["plant/values/status", "plant/values"]);
}, 60_000);

test("a limit below any message stops the sink with the bytes that it needs, and drops nothing", async () => {
  // MQTT 5.0, 3.2.2.3.6: maximum packet size.
  let limit = 150;
  const broker = await startRawBroker((packet, socket) => {
    if (packet.type === CONNECT) socket.write(connack5(0, [0x27, 0, 0, limit >> 8, limit & 0xff]));
    if (packet.type === PUBLISH) socket.write(puback(packet));
  });
  onTestFinished(() => broker.stop());
  const rig = await startRig();
  onTestFinished(() => rig.stop());
  rig.start(mqttSpec(broker.port));
  rig.append(3);
  await expect.poll(() => rig.report()?.error?.detail, { timeout: 20_000 }).toMatch(/150 bytes at most.*to 1068 bytes at least/);
  await expect.poll(() => broker.sockets.length, { timeout: 30_000 }).toBeGreaterThanOrEqual(4);
  expect(rig.report()).toMatchObject({ state: "ERROR", error: { condition: "server_refuses" } });
  expect(rig.sink()).toMatchObject({ accepted: 12, delivered: 0, pending: 12, dropped: {} });
  limit = 4000;
  await expect.poll(() => rig.sink(), { timeout: 60_000 }).toMatchObject({ delivered: 12, pending: 0, dropped: {} });
  expect(rig.report()?.state).toBe("OK");
}, 120_000);
