import { afterEach, describe, expect, it } from "vitest";
import type { AnyDriver, AnySession, Discovered, DriverContext, Point, Prepared } from "../../../drivers/driver.ts";
import opcua from "../../../drivers/opcua/driver.ts";
import { type OpcuaSimulator, OTHER_NAMESPACE, PLANT_NAMESPACE, startOpcuaSimulator } from "../../../drivers/opcua/simulator.ts";
import { silentLog } from "../../../src/model/context.ts";
import type { Kept } from "../../../src/model/kept.ts";
import { ReasonError } from "../../../src/model/reason.ts";
import { textsOf } from "../../../src/model/testing/warnings.ts";
import type { Reading } from "../../../src/model/value.ts";
import { SessionHost } from "../../../src/threads/session/host.ts";
import { remoteDriver } from "../../../src/threads/session/remote-drivers.ts";
import { prepareAll } from "../../conformance/support/read-all.ts";
import { apiOf } from "../../support/api.ts";
import { startBuiltCollector } from "../../support/built-collector.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";

/** The real driver with its sessions in the worker: the same values, the same failures, and no session left open. */

const WITHIN = { timeout: 30_000, interval: 50 };
const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function simulatorOf(options: Parameters<typeof startOpcuaSimulator>[0] = {}): Promise<OpcuaSimulator> {
  const simulator = await startOpcuaSimulator(options);
  open.push(() => simulator.close().catch(() => {}));
  return simulator;
}

function sessionHostOf(): SessionHost {
  const sessions = new SessionHost({
    entry: new URL("../../../src/threads/session/worker.ts", import.meta.url),
    workerData: {},
    log: silentLog,
  });
  open.unshift(() => sessions.stop(5000));
  return sessions;
}

const contextOf = (signal: AbortSignal = new AbortController().signal): DriverContext => ({
  signal,
  log: silentLog,
  timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 10_000 },
});
const settings = opcua.settings.parse({});

/** One session, and a reader of addresses over it. */
async function readerOf(driver: AnyDriver, simulator: OpcuaSimulator, port = simulator.port, kept?: Kept) {
  const details = driver.details.parse(simulator.details("127.0.0.1", port));
  const session = await driver.connect({ details, settings, secrets: {} }, contextOf());
  return {
    session,
    async read(addresses: readonly string[], signal?: AbortSignal) {
      const points = addresses.map((text, index): Point => ({ index, ...driver.parseAddress(text, undefined, settings) }));
      const { ready, refused } = await prepareAll(session, points, { ...contextOf(signal), ...(kept && { kept }) });
      const readings = new Map<number, Reading>(refused);
      for (const request of driver.plan(ready, session.limits))
        for (const [i, reading] of (await session.read(request, contextOf(signal))).entries())
          readings.set(request.points[i]?.index ?? -1, reading);
      return points.map(({ index }) => readings.get(index));
    },
  };
}

describe("OPC UA in the session worker", { timeout: 60_000 }, () => {
  it("brings every type of value across as the driver reads it, also what is missing", async () => {
    const simulator = await simulatorOf({ bulk: 3000 });
    const here = await readerOf(opcua, simulator);
    open.unshift(() => here.session.close());
    const there = await readerOf(remoteDriver(opcua, sessionHostOf()), simulator);
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
    const driver = remoteDriver(opcua, sessionHostOf());
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

  it("sees a server go, and ends a read that is aborted", async () => {
    const simulator = await simulatorOf({ bulk: 10 });
    const proxy = await startFaultProxy(simulator.port);
    open.unshift(proxy.close);
    const driver = remoteDriver(opcua, sessionHostOf());
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

  it("looks 2,000 paths up, also where the first look was stopped in the middle", async () => {
    const simulator = await simulatorOf({ bulk: 2000, operationLimits: { maxNodesPerTranslateBrowsePathsToNodeIds: 100 } });
    const i = simulator.plantIndex;
    const driver = remoteDriver(opcua, sessionHostOf());
    const { session, read } = await readerOf(driver, simulator);
    open.unshift(() => session.close());
    const paths = Array.from({ length: 2000 }, (_, n) => `/Objects/${i}:Plant/${i}:Bulk/${i}:Bulk.${n}`);
    const points = paths.map((text, index): Point => ({ index, ...driver.parseAddress(text, undefined, settings) }));
    simulator.misbehave({ service: "TranslateBrowsePathsToNodeIds", answer: { delayMs: 100 } });
    const stop = new AbortController();
    setTimeout(() => stop.abort(new ReasonError("TIMEOUT", "the look-up's deadline has passed")), 450);
    const found: Prepared[] = [];
    for await (const batch of session.prepare?.(points, contextOf(stop.signal)) ?? []) found.push(...batch);
    expect(found.length).toBeGreaterThanOrEqual(100);
    expect(found.length).toBeLessThan(2000);
    expect(session.alive()).toBe(true);
    simulator.behave();
    const readings = await read([...paths, `/Objects/${i}:Plant/${i}:None`]);
    expect(readings.slice(0, 2000).map((reading) => reading?.quality === "good" && reading.value)).toEqual(paths.map((_, n) => n + 0.25));
    expect(readings[2000]).toMatchObject({ fault: "not_found", detail: expect.stringContaining("BadNoMatch") });
  });

  it("tells of a node that a path led to and that is gone, with another epoch", async () => {
    const simulator = await simulatorOf({ bulk: 3 });
    const i = simulator.plantIndex;
    const driver = remoteDriver(opcua, sessionHostOf());
    const { session } = await readerOf(driver, simulator);
    open.unshift(() => session.close());
    const point: Point = { index: 0, ...driver.parseAddress(`/Objects/${i}:Plant/${i}:Bulk/${i}:Bulk.1`, undefined, settings) };
    const { ready } = await prepareAll(session, [point], contextOf());
    const [request] = driver.plan(ready, session.limits);
    const { epoch } = session;
    expect(epoch).toBeTruthy();
    simulator.variable("Bulk.1").moveTo("Elsewhere", 77);
    if (request) await expect(session.read(request, contextOf())).rejects.toMatchObject({ name: "FaultError", scope: "program" });
    expect(session.epoch).not.toBe(epoch);
  });

  it("finds what the driver finds, in pages, and stops where nobody wants more", async () => {
    const simulator = await simulatorOf({ bulk: 2500, tree: { depth: 3, folders: 4, variables: 5 } });
    const here = await readerOf(opcua, simulator);
    open.unshift(() => here.session.close());
    const there = await readerOf(remoteDriver(opcua, sessionHostOf()), simulator);
    open.unshift(() => there.session.close());
    const all = async (session: AnySession, ctx: DriverContext): Promise<Discovered[]> => {
      const found: Discovered[] = [];
      for await (const one of session.discover?.(ctx) ?? []) found.push(one);
      return found;
    };
    const told: number[] = [];
    const found = await all(there.session, { ...contextOf(), progress: (done) => void told.push(done) });
    expect(found).toEqual(await all(here.session, contextOf()));
    expect(found.length).toBeGreaterThan(2500);
    expect(told.length).toBeGreaterThan(0);
    expect(told.at(-1)).toBeLessThanOrEqual(found.length);
    const asked = simulator.requests("Browse");
    for await (const _ of there.session.discover?.(contextOf()) ?? []) break;
    await new Promise((done) => setTimeout(done, 500));
    expect(simulator.requests("Browse") - asked).toBeLessThan(asked / 4);
    // Who leaves costs the others on the session nothing.
    expect(await there.read([`ns=${simulator.plantIndex};s=Bulk.1`])).toMatchObject([{ value: 1.25 }]);
    const stop = new AbortController();
    const stopped = (async () => {
      for await (const _ of there.session.discover?.(contextOf(stop.signal)) ?? []) stop.abort(new ReasonError("TIMEOUT", "long enough"));
    })();
    await expect(stopped).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
  });

  it("means by ns= what the source's first list of namespaces does, over sessions", async () => {
    const values: Record<string, unknown> = {};
    const kept: Kept = {
      values,
      set: (key, value) => {
        values[key] = value;
      },
    };
    const simulator = await simulatorOf({ bulk: 1, namespaces: [PLANT_NAMESPACE, OTHER_NAMESPACE] });
    const driver = remoteDriver(opcua, sessionHostOf());
    const address = `ns=${simulator.plantIndex};s=Double`;
    const first = await readerOf(driver, simulator, simulator.port, kept);
    expect(await first.read([address])).toMatchObject([{ value: -2.25e-300 }]);
    await first.session.close();
    await simulator.close();
    const again = await simulatorOf({ bulk: 1, namespaces: [OTHER_NAMESPACE, PLANT_NAMESPACE], port: simulator.port });
    expect(again.plantIndex).not.toBe(simulator.plantIndex);
    const second = await readerOf(driver, again, again.port, kept);
    open.unshift(() => second.session.close());
    expect(await second.read([address])).toMatchObject([{ value: -2.25e-300 }]);
    await expect
      .poll(() => textsOf(second.session.warnings?.()), WITHIN)
      .toContainEqual(expect.stringContaining("renumbered its namespaces"));
  });

  it("ends in time with the service in the middle of a read that nobody answers", async () => {
    const simulator = await simulatorOf({ bulk: 10 });
    const proxy = await startFaultProxy(simulator.port);
    open.unshift(proxy.close);
    const collector = await startBuiltCollector();
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
