import { createInterface } from "node:readline";
import { Agent } from "../../../src/agent/agent.ts";
import type { SourceInput } from "../../../src/agent/source-spec.ts";
import { createResolver } from "../../../src/lib/resolver.ts";
import { silentLog } from "../../../src/model/context.ts";
import { startClock } from "../../../src/os/clock.ts";
import { createNameLookup } from "../../../src/os/name-lookup.ts";

/**
 * The agent of the collector in the lab's collector host. Takes one line of JSON per set of sources, prints one per change:
 * `{"at": epoch ms, "source": name, "state": …, "reason": …, "condition": …}`, and `{"at", "source", "good": true}` per good readout.
 * The line `"retries"` asks for `{"at", "source", "retryAt": epoch ms or null, "failedReadouts"}` of each source.
 */
const clock = startClock(new AbortController().signal);
const tell = (line: object) => process.stdout.write(`${JSON.stringify({ at: Date.now(), ...line })}\n`);
const agent = new Agent({
  drivers: {
    modbus_tcp: { driver: () => import("../../../drivers/modbus_tcp/driver.ts") },
    udp_echo: { driver: () => import("../../support/udp-driver.ts") },
  },
  clock,
  resolver: createResolver({ lookUp: createNameLookup(), now: clock.monotonicMs }),
  logFor: () => silentLog,
  emit(layout, readout) {
    if (readout.readings.some((reading) => reading?.quality === "good")) tell({ source: layout.source.name, good: true });
  },
  changed() {
    for (const { name, status, error } of agent.reports())
      tell({ source: name, state: status.state.type, reason: error?.reason.type, condition: error?.condition, detail: error?.detail });
  },
});
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line) as readonly SourceInput[] | "retries";
  if (asked === "retries") {
    for (const { name, next_retry_at: nextRetry, counters } of agent.reports())
      tell({ source: name, retryAt: nextRetry === null ? null : Date.parse(nextRetry), failedReadouts: counters.failed_readouts });
    continue;
  }
  await agent.apply(asked);
  tell({ applied: true });
}
process.exit(0);
