import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startBroker } from "../../../../test/support/broker.ts";
import { sourceReport } from "../../../../test/support/source-report.ts";
import { plainLayout, plainReadout } from "../../../buffer/testing/readouts.ts";
import { type Context, silentLog } from "../../../model/context.ts";
import { SINK_DETAILS } from "../../../model/sink-details.ts";
import type { Sink } from "../../sink.ts";
import { openMemory } from "../memory.ts";
import { settingsSchema } from "../settings.ts";
import kind from "../sink.ts";

const ctx: Context = { signal: new AbortController().signal, log: silentLog };
const UUID = "7e0d3c5a-0000-4000-8000-000000000001";
const MANIFEST = "plant/meta/press-1/manifest";

test("a sink that closes leaves its last minute; the manifest goes with the source, with the setting and with the sink", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "manifest-"));
  const broker = await startBroker();
  onTestFinished(async () => {
    await broker.stop();
    rmSync(folder, { recursive: true });
  });
  const memory = openMemory({ folder, uuid: UUID, endpoint: "x:1", log: silentLog });
  const details = SINK_DETAILS.mqtt.read.parse({ type: "mqtt", host: "127.0.0.1", port: broker.port, topic: "plant/{source}" });
  const opened = async (settings: object, work: (sink: Sink) => Promise<unknown>): Promise<void> => {
    const sink = await kind.open(
      { uuid: UUID, name: "broker", details, settings: settingsSchema.parse(settings), secrets: {}, memory },
      ctx,
    );
    await work(sink).finally(() => sink.close());
  };
  const layout = plainLayout(2);
  const source = sourceReport("press-1", { uuid: layout.source.uuid, layout });
  const on = { manifest: true };
  const write = (n: number) => async (sink: Sink) => {
    await sink.describe?.([source], ctx);
    await sink.write({ id: `life-${n}-${n}`, layout, readouts: [plainReadout(2, n, 1_800_000_000_000 + n * 1000)], backlog: false }, ctx);
    await sink.publishLoss?.({ id: "l-1", reason: "too_old", from: 1_800_000_000_000, to: 1_800_000_001_000, values: 7 }, ctx);
  };
  const manifest = (): { minutes: { count: number; last: string }[]; losses: object[] } =>
    JSON.parse(broker.retained.get(MANIFEST) ?? "null");

  await opened(on, write(1));
  await expect
    .poll(manifest)
    .toMatchObject({ minutes: [{ count: 1, last: "life-1-1" }], losses: [{ id: "l-1", count: 7, reason: "too_old" }] });
  await opened(on, write(2));
  await expect.poll(manifest).toMatchObject({ minutes: [{ count: 2, last: "life-2-2" }] });
  const records = broker.received.filter(({ topic }) => topic === "plant/meta/press-1/minute");
  expect(records.map(({ retain, payload }) => [retain, (JSON.parse(payload) as { count: number }).count])).toEqual([
    [false, 1],
    [false, 2],
  ]);

  await opened(on, async (sink) => sink.describe?.([], ctx));
  await expect.poll(() => broker.retained.has(MANIFEST)).toBe(false);
  await opened(on, async (sink) => sink.describe?.([source], ctx));
  await expect.poll(() => broker.retained.has(MANIFEST)).toBe(true);
  await opened({}, async (sink) => sink.describe?.([source], ctx));
  await expect.poll(() => broker.retained.has(MANIFEST)).toBe(false);
  const file = path.join(folder, `${UUID}.manifest.jsonl`);
  expect(existsSync(file)).toBe(true);
  memory.close(true);
  expect(existsSync(file)).toBe(false);
});
