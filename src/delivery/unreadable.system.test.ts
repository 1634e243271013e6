import { closeSync, openSync, writeSync } from "node:fs";
import Database from "better-sqlite3";
import { afterEach, expect, test } from "vitest";
import { startBroker } from "../../test/support/broker.ts";
import { freePort } from "../../test/support/free-port.ts";
import { mqttSpec, startRig } from "./testing/rig.ts";

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** Overwrites a page in the middle of the batches, behind the back of all who have the file open. */
function damageBatches(file: string): void {
  const db = new Database(file);
  db.pragma("wal_checkpoint(TRUNCATE)");
  const pageBytes = Number(db.pragma("page_size", { simple: true }));
  const pages = db
    .prepare<[], number>("SELECT pageno FROM dbstat WHERE name = 'batch' AND pagetype = 'leaf' ORDER BY pageno")
    .pluck()
    .all();
  db.close();
  const page = pages[pages.length >> 1];
  if (page === undefined) throw new Error("no batch is in the file");
  const fd = openSync(file, "r+");
  writeSync(fd, Buffer.alloc(pageBytes, 0xff), 0, pageBytes, (page - 1) * pageBytes);
  closeSync(fd);
}

test("a page that cannot be read is found although only the delivery looks at it: what was in it is counted, and all else arrives", async () => {
  const rig = await startRig();
  undo.push(() => rig.stop());
  const port = await freePort();
  rig.start(mqttSpec(port));
  for (let i = 0; i < 20; i++) rig.append(20, { variables: 300 });
  await expect.poll(() => rig.sink()?.pending, { timeout: 10_000 }).toBe(400 * 300);
  damageBatches(rig.file);
  const broker = await startBroker({ port });
  undo.push(() => broker.stop());
  await expect.poll(() => rig.report()?.state, { timeout: 10_000 }).toBe("OK");
  await expect.poll(() => rig.sink()?.dropped.damaged, { timeout: 10_000 }).toBeGreaterThan(0);
  await expect.poll(() => broker.received.some(({ payload }) => payload.includes('"reason":"damaged"')), { timeout: 10_000 }).toBe(true);
  const arrived = () => broker.received.filter(({ payload }) => /"v0":(400|404)[,}]/.test(payload)).length;
  rig.append(5, { variables: 300 });
  await expect.poll(arrived, { timeout: 10_000 }).toBeGreaterThan(0);
  await expect.poll(() => rig.sink()?.pending, { timeout: 10_000 }).toBe(0);
  const { accepted, delivered = 0, dropped } = rig.sink() ?? {};
  expect(accepted).toBe(405 * 300);
  // One page: six readouts of 600 bytes.
  expect(dropped?.damaged).toBeLessThanOrEqual(7 * 300);
  expect(delivered + (dropped?.damaged ?? 0)).toBe(accepted);
  const said = rig.told.flatMap((told) => (told.type === "log" && told.level === "warn" ? [told.message] : []));
  expect(said.filter((message) => message.startsWith("the buffer cannot be read"))).toHaveLength(1);
}, 60_000);
