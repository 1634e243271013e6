import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { formatBytes } from "../../base/bytes.ts";
import { LIMITS } from "./limits.ts";
import { FAULT_STATUS } from "./quality.ts";
import { settingsSchema } from "./settings.ts";

const SETTINGS = settingsSchema.parse({});
const text = readFileSync(new URL("./README.md", import.meta.url), "utf8");

test("the page has the status of every fault", () => {
  const rows = [...text.matchAll(/^\| `([a-z_]+)` \| `([A-Za-z]+)` \|$/gm)].map(([, fault, status]) => [fault, status]);
  expect(Object.fromEntries(rows)).toEqual(FAULT_STATUS);
});

test("the page has the limits", () => {
  for (const row of [
    `| sessions | ${LIMITS.sessions} (`,
    `| subscriptions | ${LIMITS.subscriptionsPerSession} a session, ${LIMITS.subscriptions} in all |`,
    `| monitored items | ${LIMITS.monitoredItems} in all (\`max_monitored_items\`), with ${LIMITS.dataQueue} values each`,
    `| a request | ${LIMITS.nodesPerRead} nodes to read, ${LIMITS.nodesPerBrowse} to browse, ${LIMITS.itemsPerCall} monitored items; ${LIMITS.request / 2 ** 20} MiB with all its chunks, ${LIMITS.messageBeforeSession / 2 ** 10} KiB before`,
    `| an answer | ${formatBytes(SETTINGS.max_answer)} (\`max_answer\`)`,
    `| readouts that wait to be shown | ${formatBytes(SETTINGS.max_waiting)} (\`max_waiting\`)`,
    `| a client without a session | ${LIMITS.handshake / 1000} s`,
    `when it reads nothing for ${LIMITS.unread / 1000} s |`,
    `${LIMITS.publishingInterval} ms or longer; other nodes than values are sampled every ${LIMITS.samplingInterval} ms`,
    `| unacknowledged notifications | ${LIMITS.unacknowledged} values`,
    `| unread answers | ${LIMITS.unsent / 2 ** 20} MiB`,
  ])
    expect(text).toContain(row);
});
