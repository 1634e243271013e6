import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { openAudit } from "./audit.ts";
import { openDatabase } from "./database.ts";
import { RefusedKeys } from "./refused-keys.ts";
import { startTestServer } from "./testing.ts";

test("the first of an address is told at once, the rest of its minute together, and memory is bounded", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const told: string[] = [];
  const refused = new RefusedKeys((address, count) => told.push(`${address} ${count}`));
  for (let n = 0; n < 5; n++) refused.add("10.0.0.1");
  refused.add("::ffff:10.0.0.1");
  refused.add("2001:db8::1");
  refused.add("2001:db8::2");
  expect(told.splice(0)).toEqual(["10.0.0.1 1", "2001:db8:0:0::/64 1"]);
  vi.advanceTimersByTime(60_000);
  expect(told.splice(0)).toEqual(["10.0.0.1 5", "2001:db8:0:0::/64 1"]);
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual([]);
  for (let n = 0; n < 3000; n++) refused.add(`host-${n}`);
  expect(told).toHaveLength(1001);
  refused.close();
  expect(told.at(-1)).toBe("other addresses 1999");
});

test("fault: keys that open nothing leave no line, no number and no entry in the trail", async () => {
  let counted = 0;
  const api = await startTestServer(undefined, undefined, {
    onRefusedKeys(count) {
      counted += count;
    },
  });
  const canary = "Canary-wrong-key-81";
  for (let n = 0; n < 8; n++) expect((await api.send("GET", "/v2/sites", undefined, { authorization: canary })).status).toBe(401);
  await api.server.close();
  expect(counted).toBe(8);
  const lines = api.log.lines.filter((line) => line.includes("without a valid key"));
  expect(lines).toEqual([expect.stringContaining('"requests":1}'), expect.stringContaining('"requests":7}')]);
  const db = openDatabase(join(api.folder, "api", "configuration.db"));
  const audit = openAudit(db);
  const trail = audit.newest(10);
  // Who was refused has changed nothing: no backup is made for it.
  expect(audit.lastChange()).toBeUndefined();
  db.close();
  expect(trail).toMatchObject([
    { role: "nobody", key_id: null, address: "127.0.0.1", operation: "refuseKey", fields: ["7 requests"] },
    { operation: "refuseKey", fields: ["1 request"] },
  ]);
  expect(JSON.stringify([trail, api.log.lines])).not.toContain(canary);
});
