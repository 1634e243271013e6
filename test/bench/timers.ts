import { monitorEventLoopDelay } from "node:perf_hooks";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { Agent } from "../../src/agent/agent.ts";
import { nextTick, phaseOf, stableFraction } from "../../src/agent/time.ts";
import { heaps } from "../../src/lib/heap.ts";
import { createResolver } from "../../src/lib/resolver.ts";
import { silentLog } from "../../src/model/context.ts";
import { startClock } from "../../src/os/clock.ts";
import { createNameLookup } from "../../src/os/name-lookup.ts";
import { sourceOf, startDevices } from "../isolation/rig.ts";
import { benchProductTimers } from "./product-timers.ts";

/** Until sources have started, and heaps have settled (src/lib/heap.ts). */
const WARM_UP_MS = 25_000;
const MEASURE_MS = 20_000;

const BAD = ["blackHole", "silent", "slow", "garbage", "reset", "resetsAtOnce"];

/** One load: so many sources at so many ms, beside bad ones. */
async function measure(title: string, sets: readonly (readonly [count: number, intervalMs: number])[], bad: number): Promise<void> {
  const stop = new AbortController();
  const clock = startClock(stop.signal);
  const { ports, stop: stopDevices } = await startDevices(sets.reduce((sum, [count]) => sum + count, 0));
  const free = [...ports.good];
  const good = sets.flatMap(([count, intervalMs]) =>
    Array.from({ length: count }, (_, i) => sourceOf(`good-${intervalMs}-${i}`, "127.0.0.1", free.pop() ?? 0, intervalMs)),
  );
  const badOnes = Array.from({ length: bad }, (_, i) =>
    i % 7 === 0
      ? sourceOf(`bad-${i}`, "nowhere.invalid", 502, 1000)
      : sourceOf(`bad-${i}`, "127.0.0.1", Number(ports[BAD[i % BAD.length] ?? ""]), 1000),
  );
  const intervals = new Map(
    good.map(({ record: { uuid, readout_interval } }) => {
      const intervalMs = readout_interval ?? 0;
      return [uuid, { intervalMs, phase: phaseOf(stableFraction(uuid), intervalMs) }];
    }),
  );
  const late: number[] = [];
  let measuring = false;
  const agent = new Agent({
    drivers: { modbus_tcp: { driver: async () => ({ default: modbus }) } },
    clock,
    resolver: createResolver({ lookUp: createNameLookup(), now: clock.monotonicMs }),
    logFor: () => silentLog,
    emit({ source: { uuid } }, { time }) {
      const known = intervals.get(uuid);
      if (!measuring || !known) return;
      // When the first request was sent, on the clock of the schedule.
      const sent = time - clock.epochMs() + clock.monotonicMs();
      const since = sent - (nextTick(sent, known.intervalMs, known.phase) - known.intervalMs);
      late.push(since > known.intervalMs - 2 ? 0 : since);
    },
    changed() {},
  });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const wanted = [...good, ...badOnes];
  // As the service does.
  heaps.fit({ sources: wanted.length, variables: wanted.reduce((sum, { variables }) => sum + variables.length, 0) });
  await agent.apply(wanted);
  await new Promise((done) => setTimeout(done, WARM_UP_MS));
  const overrunsOf = () =>
    agent
      .reports()
      .reduce((sum, { name, counters }) => sum + (name.startsWith("good") ? counters.overruns + counters.failed_readouts : 0), 0);
  const [before, cpu] = [overrunsOf(), process.cpuUsage()];
  measuring = true;
  delay.enable();
  await new Promise((done) => setTimeout(done, MEASURE_MS));
  measuring = false;
  delay.disable();
  const { user, system } = process.cpuUsage(cpu);
  const missed = overrunsOf() - before;
  await agent.stop();
  stop.abort();
  stopDevices();
  late.sort((a, b) => a - b);
  const at = (q: number) => (late[Math.floor(late.length * q)] ?? Number.NaN).toFixed(1);
  console.log(
    `${title}\n  ${late.length} readouts in ${MEASURE_MS / 1000} s, missed ${missed}; lateness p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(0.9999)} ms; ` +
      `event loop p99 ${(delay.percentile(99) / 1e6).toFixed(1)} ms; CPU ${((user + system) / 10 / MEASURE_MS).toFixed(1)} % of a core`,
  );
}

/** When the first request of a readout is sent, after its tick. */
export async function benchTimers(): Promise<void> {
  await measure(
    "500 sources at 1 s and 50 at 100 ms, next to 50 bad ones",
    [
      [500, 1000],
      [50, 100],
    ],
    50,
  );
  await measure("1,000 sources at 1 s", [[1000, 1000]], 0);
  console.log("1,000 sources of 10 values at 1 s, the product as it is shipped, with store, delivery and a broker");
  await benchProductTimers(1000);
}
