import { createInterface } from "node:readline";
import { createAgent } from "../../../src/agent/agent.ts";
import type { SourceInput } from "../../../src/agent/prepare.ts";
import { createResolver } from "../../../src/agent/resolve.ts";
import { silentLog } from "../../../src/model/context.ts";
import { startClock } from "../../../src/os/clock.ts";
import { createNameLookup } from "../../../src/os/name-lookup.ts";

/**
 * The acquisition part of the collector in the lab's collector host. Takes one line of JSON per set of sources, prints one per change:
 * `{"at": epoch ms, "source": name, "state": …, "reason": …, "condition": …}`, and `{"at", "source", "good": true}` per good readout.
 */
const clock = startClock(new AbortController().signal);
const tell = (line: object) => process.stdout.write(`${JSON.stringify({ at: Date.now(), ...line })}\n`);
const agent = createAgent({
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
  await agent.apply(JSON.parse(line) as SourceInput[]);
  tell({ applied: true });
}
process.exit(0);
