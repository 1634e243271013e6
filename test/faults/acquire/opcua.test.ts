import { afterEach, describe, expect, it } from "vitest";
import type { AnyDriver, DriverContext, Point } from "../../../drivers/driver.ts";
import opcua from "../../../drivers/opcua/driver.ts";
import { type OpcuaSimulator, startOpcuaSimulator } from "../../../drivers/opcua/simulator.ts";
import { type Acquisition, createAcquisition } from "../../../src/acquire/acquisition.ts";
import { remoteDriver } from "../../../src/acquire/drivers.ts";
import { silentLog } from "../../../src/model/context.ts";
import { ReasonError } from "../../../src/model/reason.ts";
import type { Reading } from "../../../src/model/value.ts";
import { prepareAll } from "../../conformance/support/read-all.ts";
import { apiOf } from "../../support/api.ts";
import { startCollector } from "../../support/collector-process.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";

/** The real driver with its sessions in the worker: the same values, the same failures, and nothing left behind. */

const WITHIN = { timeout: 30_000, interval: 50 };
const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function simulatorOf(options: Parameters<typeof startOpcuaSimulator>[0] = {}): Promise<OpcuaSimulator> {
  const simulator = await startOpcuaSimulator(options);
  open.push(simulator.close);
  return simulator;
}

function acquisitionOf(): Acquisition {
  const acquisition = createAcquisition({
    entry: new URL("../../../src/workers/acquire.ts", import.meta.url),
    workerData: {},
    log: silentLog,
  });
  open.unshift(() => acquisition.stop(5000));
  return acquisition;
}

const contextOf = (signal: AbortSignal = new AbortController().signal): DriverContext => ({
  signal,
  log: silentLog,
  timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 10_000 },
});
const settings = opcua.settings.parse({});

/** One session, and a reader of addresses over it. */
async function readerOf(driver: AnyDriver, simulator: OpcuaSimulator, port = simulator.port) {
  const details = driver.details.parse(simulator.details("127.0.0.1", port));
  const session = await driver.connect({ details, settings, secrets: {} }, contextOf());
  return {
    session,
    async read(addresses: readonly string[], signal?: AbortSignal) {
      const points = addresses.map((text, index): Point => ({ index, ...driver.parseAddress(text, undefined, settings) }));
      const { ready, refused } = await prepareAll(session, points, contextOf(signal));
      const readings = new Map<number, Reading>(refused);
      for (const request of driver.plan(ready, session.limits))
        for (const [i, reading] of (await session.read(request, contextOf(signal))).entries())
          readings.set(request.points[i]?.index ?? -1, reading);
      return points.map(({ index }) => readings.get(index));
    },
  };
}

describe("OPC UA in the acquisition worker", { timeout: 60_000 }, () => {
  it("brings every type of value across as the driver reads it, also what is missing", async () => {
    const simulator = await simulatorOf({ bulk: 3000 });
    const here = await readerOf(opcua, simulator);
    open.unshift(() => here.session.close());
    const there = await readerOf(remoteDriver(opcua, acquisitionOf()), simulator);
    expect(there.session.limits).toEqual(here.session.limits);
    const bulk = Array.from({ length: 3000 }, (_, i) => `ns=${simulator.plantIndex};s=Bulk.${i}`);
    const addresses = [...simulator.variables.map(({ address }) => address), simulator.missing.address, ...bulk];
    const [expected, actual] = [await here.read(addresses), await there.read(addresses)];
    expect(actual).toHaveLength(addresses.length);
    for (const [i, reading] of actual.entries()) {
      const wanted = expected[i];
      // Time stamps are those of each read.
      const { sourceTime: at, ...own } = { sourceTime: undefined, ...reading };
      const { sourceTime: wantedAt, ...other } = { sourceTime: undefined, ...wanted };
      expect({ address: addresses[i], ...own }).toStrictEqual({ address: addresses[i], ...other });
      expect(typeof at).toBe(typeof wantedAt);
    }
    expect(actual.filter((reading) => reading?.quality === "bad")).toHaveLength(
      expected.filter((reading) => reading?.quality === "bad").length,
    );
    expect(actual.at(-1)).toMatchObject({ quality: "good", value: 2999.25 });
  });

  it("names the server's own words for what fails", async () => {
    const simulator = await simulatorOf({ bulk: 1, maxSessions: 1 });
    const driver = remoteDriver(opcua, acquisitionOf());
    const { session } = await readerOf(driver, simulator);
    await expect(readerOf(driver, simulator)).rejects.toMatchObject({
      name: "ReasonError",
      reason: { type: "OPC_UA_ERROR_RESPONSE", code: 0x80560000, name: "BadTooManySessions" },
    });
    expect(session.alive()).toBe(true);
    await session.close();
    expect(simulator.sessions()).toBe(0);
    await expect(readerOf(driver, simulator, 1)).rejects.toMatchObject({ reason: { type: "CONNECTION_REFUSED" } });
  });

  it("sees a server go, and lets go of a read that is aborted", async () => {
    const simulator = await simulatorOf({ bulk: 10 });
    const proxy = await startFaultProxy(simulator.port);
    open.unshift(proxy.close);
    const driver = remoteDriver(opcua, acquisitionOf());
    const { session, read } = await readerOf(driver, simulator, proxy.port);
    const address = `ns=${simulator.plantIndex};s=Bulk.1`;
    expect(await read([address])).toMatchObject([{ value: 1.25 }]);
    proxy.fault = "silent";
    const stop = new AbortController();
    setTimeout(() => stop.abort(new ReasonError("TIMEOUT", "the readout's deadline has passed")), 100);
    const began = performance.now();
    await expect(read([address], stop.signal)).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    expect(performance.now() - began).toBeLessThan(2500);
    await session.close();
    proxy.fault = "none";
    const again = await readerOf(driver, simulator, proxy.port);
    expect(again.session.alive()).toBe(true);
    await proxy.close();
    await expect.poll(() => again.session.alive(), WITHIN).toBe(false);
    await again.session.close();
  });

  it("ends in time with the service in the middle of a read that nobody answers", async () => {
    const simulator = await simulatorOf({ bulk: 10 });
    const proxy = await startFaultProxy(simulator.port);
    open.unshift(proxy.close);
    const collector = await startCollector();
    open.unshift(() => collector.stop("SIGKILL"));
    const api = apiOf(collector.apiUrl, await collector.adminKey());
    const { collector: uuid } = await collector.status();
    const source = await api.post("/v2/data-sources", {
      name: "mill",
      collector: uuid,
      machine: "00000000-0000-4000-8000-000000000001",
      details: simulator.details("127.0.0.1", proxy.port),
    });
    await api.patch(`/v2/data-sources/${source.uuid}`, { readout_interval: 1 });
    await api.post("/ext/v1/variables", { data_source: source.uuid, name: "v", address: `ns=${simulator.plantIndex};s=Bulk.1` });
    await expect.poll(async () => (await collector.status()).sources[0]?.status.state.type, WITHIN).toBe("OK");
    proxy.fault = "silent";
    await new Promise((done) => setTimeout(done, 1500));
    const began = performance.now();
    expect(await collector.stop()).toBe(0);
    console.log(`stopped in the middle of a read in ${(performance.now() - began).toFixed(0)} ms`);
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(proxy.connections()).toBe(0);
  });
});
