import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { Agent } from "../../src/agent/agent.ts";
import type { SourceInput } from "../../src/agent/source-spec.ts";
import { nextTick, phaseOf, stableFraction } from "../../src/agent/time.ts";
import { createResolver } from "../../src/lib/resolver.ts";
import { silentLog } from "../../src/model/context.ts";
import { startClock } from "../../src/os/clock.ts";
import { createNameLookup } from "../../src/os/name-lookup.ts";
import { freePort } from "../support/free-port.ts";
import { type NameServer, startNameServer } from "../support/name-server.ts";
import { type Devices, sourceOf, startDevices } from "./rig.ts";

const GOOD = 50;
const BAD = 50;
const INTERVAL_MS = 1000;
const MEASURE_MS = 15_000;
const EARLY_MS = 2;
const DOC = path.resolve(import.meta.dirname, "../../docs/generated/isolation.md");

/** Only what does not change from run to run: how late the values were is printed. */
const aboutIsolation = (missed: number): readonly string[] => [
  "# What bad data sources cost good ones",
  "",
  `Written by \`test/isolation\` from its run: ${GOOD} healthy Modbus data sources of 20 variables, read every ${INTERVAL_MS / 1000} s for ${MEASURE_MS / 1000} s beside ${BAD} bad ones in one process. The healthy ones missed ${missed} readouts.`,
  "",
  "| what is wrong with a bad one | sources | what its status said (condition) |",
  "| --- | --- | --- |",
];

const source = (name: string, host: string, port: number | string, change: Partial<SourceInput["record"]> = {}): SourceInput =>
  sourceOf(name, host, port, INTERVAL_MS, change);

describe("100 sources, 50 of them bad in every way", () => {
  const stop = new AbortController();
  const clock = startClock(stop.signal);
  let devices: Devices;
  let names: NameServer;
  beforeAll(async () => {
    devices = await startDevices(GOOD);
    names = await startNameServer();
    names.names.set("never.lab", "silent").set("broken.lab", 2);
  }, 30_000);
  afterAll(async () => {
    stop.abort();
    devices.stop();
    await names.close();
  });

  it("the healthy 50 miss no poll, and are late by at most a tenth of the interval", async () => {
    const { ports } = devices;
    const at = (name: string) => ports[name] as number;
    const closed = await freePort();
    const device = (kind: string) => (name: string) => source(name, "127.0.0.1", at(kind));
    const kinds: readonly (readonly [what: string, make: (name: string) => SourceInput])[] = [
      ["nothing listens on its port", (name) => source(name, "127.0.0.1", closed)],
      ["its name server never answers", (name) => source(name, "never.lab", 502)],
      ["its name does not exist", (name) => source(name, "nowhere.lab", 502)],
      ["its name server fails", (name) => source(name, "broken.lab", 502)],
      ["its port is no number", (name) => source(name, "127.0.0.1", "five hundred and two")],
      ["its details are null", (name) => source(name, "127.0.0.1", 502, { details: null })],
      ["its type is unknown", (name) => source(name, "127.0.0.1", 502, { type: "abacus" })],
      ["its interval is 0", (name) => source(name, "127.0.0.1", 502, { readout_interval: 0 })],
      ["every packet to it is lost", device("blackHole")],
      ["it accepts and never answers", device("silent")],
      ["it resets the connection at each request", device("reset")],
      ["it closes the connection at each request", device("closes")],
      ["it refuses every address", device("refuses")],
      ["it is always busy", device("busy")],
      ["the unit behind its gateway is missing", device("noUnit")],
      ["it answers one byte a second", device("slow")],
      ["it answers garbage", device("garbage")],
      ["it resets each new connection", device("resetsAtOnce")],
    ];
    const bad = Array.from({ length: BAD }, (_, i) => kinds[i % kinds.length]?.[1](`bad-${i}`)).filter((input) => input !== undefined);
    const good = ports.good.map((port, i) => source(`good-${i}`, "127.0.0.1", port));
    const late: number[] = [];
    const polls = new Map<string, number>();
    const phases = new Map(good.map(({ record }) => [record.uuid, phaseOf(stableFraction(record.uuid), INTERVAL_MS)]));
    let measuring = false;
    const agent = new Agent({
      drivers: { modbus_tcp: { driver: async () => ({ default: modbus }) } },
      clock,
      resolver: createResolver({ lookUp: createNameLookup({ servers: [names.at] }), now: clock.monotonicMs }),
      logFor: () => silentLog,
      emit(layout, readout) {
        const phase = phases.get(layout.source.uuid);
        if (!measuring || phase === undefined || !readout.readings.every((reading) => reading?.quality === "good")) return;
        const now = clock.monotonicMs();
        // Timers may fire a little early.
        const sinceTick = now - (nextTick(now, INTERVAL_MS, phase) - INTERVAL_MS);
        late.push(sinceTick > INTERVAL_MS - EARLY_MS ? 0 : sinceTick);
        polls.set(layout.source.uuid, (polls.get(layout.source.uuid) ?? 0) + 1);
      },
      changed() {},
    });
    await agent.apply([...bad, ...good]);
    await expect.poll(() => agent.reports().filter(({ status }) => status.state.type === "OK").length, { timeout: 10_000 }).toBe(GOOD);
    const before = new Map(agent.reports().map(({ uuid, counters }) => [uuid, counters]));
    measuring = true;
    await new Promise((done) => setTimeout(done, MEASURE_MS));
    measuring = false;
    const reports = agent.reports();
    // Two that share a device whose answers never end are known to be bad one after the other.
    const silentSoFar = () => agent.reports().filter(({ name, error }) => name.startsWith("bad") && error === null).length;
    await expect.poll(silentSoFar, { timeout: 30_000 }).toBe(0);
    const last = agent.reports();
    await agent.stop();

    late.sort((a, b) => a - b);
    const p99 = late[Math.floor(late.length * 0.99)] ?? Number.POSITIVE_INFINITY;
    const missed = good.reduce((sum, { record }) => {
      const [was, is] = [before.get(record.uuid), reports.find(({ uuid }) => uuid === record.uuid)?.counters];
      return sum + (is?.overruns ?? 0) - (was?.overruns ?? 0) + (is?.failed_readouts ?? 0) - (was?.failed_readouts ?? 0);
    }, 0);
    const fewest = Math.min(...good.map(({ record }) => polls.get(record.uuid) ?? 0));
    const reasons = Map.groupBy(
      last.filter(({ name }) => name.startsWith("bad")),
      ({ error }) => error?.condition ?? error?.reason.type ?? "none",
    );
    console.log(
      `isolation: ${late.length} polls of ${GOOD} healthy sources in ${MEASURE_MS / 1000} s beside ${BAD} bad ones, missed ${missed}, values ready ${p99.toFixed(1)} ms after the tick at p99; ` +
        [...reasons].map(([reason, list]) => `${reason} ${list.length}`).join(", "),
    );
    const told = kinds.map(([what], kind) => {
      const ofKind = last.filter(({ name }) => name.startsWith("bad-") && Number(name.slice(4)) % kinds.length === kind);
      const words = ofKind.map(({ error }) =>
        error === null ? "none" : `\`${error.reason.type}\`${error.condition === null ? "" : ` (\`${error.condition}\`)`}`,
      );
      return `| ${what} | ${ofKind.length} | ${[...new Set(words)].sort().join(", ")} |`;
    });
    await expect(`${[...aboutIsolation(missed), ...told].join("\n")}\n`).toMatchFileSnapshot(DOC);
    expect(missed).toBe(0);
    expect(fewest).toBeGreaterThanOrEqual(Math.floor(MEASURE_MS / INTERVAL_MS) - 1);
    // A tenth of the interval, with the margin that behaviour in time is asserted with.
    expect(p99).toBeLessThan((INTERVAL_MS / 10) * 3);
    expect(reasons.get("none")).toBeUndefined();
    expect([...reasons.keys()]).toEqual(
      expect.arrayContaining([
        "LOOKUP_ERROR",
        "CONNECTION_REFUSED",
        "TIMEOUT",
        "CONNECTION_RESET",
        "CONNECTION_CLOSED",
        "protocol_violation",
        "configuration_invalid",
        "details_missing",
        "type_not_supported",
        "interval_invalid",
        "all_variables_faulted",
      ]),
    );
  }, 90_000);
});
