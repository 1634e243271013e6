import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startBroker } from "../../../test/support/broker.ts";
import { sourceReport } from "../../../test/support/source-report.ts";
import { mqttSpec, startRig } from "../../delivery/testing/rig.ts";
import { type Log, silentLog } from "../../model/context.ts";
import { RetainedTopics } from "./retained-topics.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "retained-topics-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test("topics are there again at the same endpoint, and not at another", () => {
  const sinks = path.join(folder, "sinks");
  const first = new RetainedTopics(sinks, "u/../x", "h:1", silentLog);
  for (const topic of ["a", "b", "c"]) first.add(topic);
  first.delete("b");
  first.close(false);
  expect([...new RetainedTopics(sinks, "u/../x", "h:1", silentLog)]).toEqual(["a", "c"]);
  expect([...new RetainedTopics(sinks, "u/../x", "h:2", silentLog)]).toEqual([]);
  expect([...new RetainedTopics(sinks, "other", "h:1", silentLog)]).toEqual([]);
});

test("what changes reaches the file by itself; forgetting removes it", async () => {
  const kept = new RetainedTopics(folder, "u", "h:1", silentLog);
  kept.add("a");
  await expect.poll(() => [...new RetainedTopics(folder, "u", "h:1", silentLog)]).toEqual(["a"]);
  kept.close(true);
  expect(await readdir(folder)).toEqual([]);
});

test("a file that cannot be read or written is logged, and has no other consequence", async () => {
  const logged: string[] = [];
  const log: Log = { ...silentLog, warn: (_fields, message) => logged.push(message) };
  await writeFile(path.join(folder, "u.json"), "{");
  expect([...new RetainedTopics(folder, "u", "h:1", log)]).toEqual([]);
  const blocked = new RetainedTopics(path.join(folder, "u.json"), "u", "h:1", log);
  blocked.add("a");
  blocked.close(false);
  expect(logged).toEqual([expect.stringContaining("cannot be read"), expect.stringContaining("cannot be written")]);
  expect([...blocked]).toEqual(["a"]);
});

test("topics of sources that were renamed or removed while the collector was down are cleared", async () => {
  const broker = await startBroker();
  try {
    const topics = () => [...broker.retained.keys()].sort();
    const first = await startRig({}, { memoryDir: folder });
    first.ask({ type: "sources", sources: [sourceReport("a"), sourceReport("b")] });
    first.start(mqttSpec(broker.port));
    await expect.poll(topics).toEqual(["plant/values/status", "plant/values/status/a", "plant/values/status/b"]);
    await first.stop();
    const second = await startRig({}, { memoryDir: folder });
    second.ask({ type: "sources", sources: [sourceReport("b"), sourceReport("c")] });
    second.start(mqttSpec(broker.port));
    await expect.poll(topics).toEqual(["plant/values/status", "plant/values/status/b", "plant/values/status/c"]);
    second.ask({ type: "stop", uuid: "sink-1", removed: true });
    await expect.poll(topics).toEqual([]);
    await expect.poll(() => existsSync(path.join(folder, "sink-1.json"))).toBe(false);
    await second.stop();
  } finally {
    await broker.stop();
  }
});
