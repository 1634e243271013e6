import { describe, expect, it, onTestFinished } from "vitest";
import type { AnyDriver } from "../../drivers/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { clock, holding, plant, rig, running, source, variable } from "../../test/support/agent.ts";
import { freePort } from "../../test/support/free-port.ts";
import { createResolver } from "../lib/resolver.ts";
import { silentLog } from "../model/context.ts";
import { textsOf } from "../model/testing/warnings.ts";

describe("the agent", () => {
  it("reads what is wanted, again and again, over one kept connection", async () => {
    const device = await plant();
    const { agent, of, report } = running();
    await agent.apply([source(1, device.port)]);
    await expect.poll(() => of("machine-1").length).toBeGreaterThan(3);
    expect(of("machine-1")[0]?.readout.readings).toEqual([
      { quality: "good", value: 11 },
      { quality: "good", value: 22 },
    ]);
    expect(device.accepted()).toBe(1);
    expect(report(1)?.status).toMatchObject({ state: { type: "OK" }, configured_variables: 2, last_readout_at: expect.any(String) });
  });

  it("opens a connection for each readout where the source says ephemeral_connections", async () => {
    const device = await plant();
    const { agent, of } = running();
    await agent.apply([source(1, device.port, {}, { ephemeral_connections: true })]);
    await expect.poll(() => of("machine-1").length).toBeGreaterThan(3);
    expect(device.accepted()).toBeGreaterThan(3);
    expect(device.connections()).toBeLessThanOrEqual(1);
  });

  it("touches no socket at an identical push, and restarts a changed source alone", async () => {
    const [first, second] = [await plant(), await plant()];
    const { agent, of } = running();
    const wanted = () => [source(1, first.port), source(2, second.port)];
    await agent.apply(wanted());
    await expect.poll(() => Math.min(of("machine-1").length, of("machine-2").length)).toBeGreaterThan(1);
    await agent.apply(wanted());
    const described = wanted().map((s) => ({ ...s, record: { ...s.record, note: "another note", manufacturer: "somebody" } }));
    await agent.apply(described);
    expect([first.accepted(), second.accepted()]).toEqual([1, 1]);
    await agent.apply([source(1, first.port), source(2, second.port, { variables: [variable(2, 1, "holding:1")] })]);
    await expect.poll(() => of("machine-2").at(-1)?.readout.readings).toEqual([{ quality: "good", value: 22 }]);
    expect([first.accepted(), second.accepted()]).toEqual([1, 2]);
  });

  it("lets a changed source that hangs on stopping delay no other's start; its own next instance waits for it", async () => {
    const [first, second] = [await plant(), await plant()];
    let release = (): void => {};
    const hanging = new Promise<void>((done) => {
      release = done;
    });
    const driver = {
      ...modbus,
      async connect(...given: Parameters<typeof modbus.connect>) {
        const session = await modbus.connect(...given);
        const isFirst = (given[0].details as { readonly port: number }).port === first.port;
        return isFirst ? { ...session, read: session.read.bind(session), close: () => hanging.then(() => session.close()) } : session;
      },
    };
    const { agent, of, report } = running({ drivers: { modbus_tcp: { driver: async () => ({ default: driver as AnyDriver }) } } });
    onTestFinished(release);
    await agent.apply([source(1, first.port), source(2, second.port)]);
    await expect.poll(() => Math.min(of("machine-1").length, of("machine-2").length)).toBeGreaterThan(1);
    const changed = (n: number, port: number) => source(n, port, { variables: [variable(n, 1, "holding:1")] });
    const made = agent.apply([changed(1, first.port), changed(2, second.port)]);
    const began = performance.now();
    await expect.poll(() => of("machine-2").at(-1)?.readout.readings, { timeout: 4000 }).toEqual([{ quality: "good", value: 22 }]);
    expect(performance.now() - began).toBeLessThan(4000);
    // The one that hangs is still seen, and a later round with another source is taken in meanwhile.
    expect(report(1)).toBeDefined();
    expect(first.accepted()).toBe(1);
    const third = await plant();
    void agent.apply([changed(1, first.port), changed(2, second.port), source(3, third.port)]);
    await expect.poll(() => of("machine-3").length, { timeout: 4000 }).toBeGreaterThan(0);
    expect(first.accepted()).toBe(1);
    release();
    await made;
    await expect.poll(() => of("machine-1").at(-1)?.readout.readings, { timeout: 8000 }).toEqual([{ quality: "good", value: 22 }]);
  });

  it("looks at no variable of a source whose record and variables are the same objects as before", async () => {
    const device = await plant();
    const { agent, of } = running();
    let looks = 0;
    const one = source(1, device.port);
    const watched = Object.defineProperty({ ...variable(1, 1, "holding:0") }, "comment", {
      enumerable: true,
      get() {
        looks++;
        return null;
      },
    });
    const wanted = { ...one, variables: [watched] };
    await agent.apply([wanted]);
    await expect.poll(() => of("machine-1").length).toBeGreaterThan(0);
    expect(looks).toBeGreaterThan(0);
    looks = 0;
    // The list is another one, as it is when another source's variables have changed.
    await agent.apply([{ ...wanted, variables: [watched], local: { ...wanted.local } }]);
    expect(looks).toBe(0);
    expect(device.accepted()).toBe(1);
  });

  it("takes in the latest of several configurations that wait, and no other between", async () => {
    const device = await plant();
    const made: string[] = [];
    const { agent } = running({
      logFor: (fields) => {
        if ("endpoint" in fields) made.push(String(fields["source"]));
        return silentLog;
      },
    });
    const applied = ["a", "b", "c", "d"].map((name) => {
      const one = source(1, device.port);
      return agent.apply([{ ...one, record: { ...one.record, name } }]);
    });
    await Promise.all(applied);
    expect(agent.reports().map(({ name }) => name)).toEqual(["d"]);
    expect(made.at(-1)).toBe("d");
    expect(made).not.toContain("b");
    expect(made).not.toContain("c");
  });

  it("stops a removed source at once, also in the middle of a read", async () => {
    const device = await plant({ misbehave: () => ({ silent: true }) });
    const { agent } = running();
    await agent.apply([source(1, device.port, { local: { answer_timeout: "1min" } })]);
    await expect.poll(() => device.requests()).toBe(1);
    const began = performance.now();
    await agent.apply([]);
    expect(performance.now() - began).toBeLessThan(3000);
    expect(agent.reports()).toEqual([]);
    await expect.poll(() => device.connections()).toBe(0);
  });

  it("says CONNECTION_REFUSED with one line while a device is down, and reads again by itself", async () => {
    const port = await freePort();
    let device = await plant({ port });
    const { agent, of, lines, report } = running();
    await agent.apply([source(1, port)]);
    await expect.poll(() => of("machine-1").length).toBeGreaterThan(0);
    await device.close();
    await expect
      .poll(() => report(1)?.status.state, { timeout: 5000 })
      .toMatchObject({ type: "ERROR", reason: { type: "CONNECTION_REFUSED" } });
    await expect.poll(() => report(1)?.counters.failed_readouts, { timeout: 5000 }).toBeGreaterThan(2);
    expect(report(1)?.next_retry_at).not.toBeNull();
    const warnings = () => lines.filter((l) => l.level === "warn" && l.fields["reason"] === "CONNECTION_REFUSED");
    expect(warnings()).toHaveLength(1);
    expect(warnings()[0]?.fields).toMatchObject({ source: "machine-1", since: expect.any(String), nextStep: expect.any(String) });
    const before = of("machine-1").length;
    device = await plant({ port });
    await expect.poll(() => of("machine-1").length, { timeout: 5000 }).toBeGreaterThan(before + 1);
    expect(report(1)?.status.state).toEqual({ type: "OK" });
  });

  it("opens a connection that the device dropped between two readouts again without a log line", async () => {
    let drops = 0;
    const device = await plant({ misbehave: () => (drops-- > 0 ? { hangUp: "fin" as const } : undefined) });
    const { agent, of, lines, report } = running();
    await agent.apply([source(1, device.port)]);
    await expect.poll(() => of("machine-1").length).toBeGreaterThan(0);
    drops = 1;
    await expect.poll(() => device.accepted()).toBe(2);
    const before = of("machine-1").length;
    await expect.poll(() => of("machine-1").length, { timeout: 5000 }).toBeGreaterThan(before);
    expect(report(1)?.counters.failed_readouts).toBe(0);
    expect(lines.filter((l) => l.level === "warn")).toEqual([]);
  });

  it("lets a bad variable cost itself only, and names it", async () => {
    const device = await plant();
    const { agent, of, report } = running();
    const variables = [variable(1, 1, "holding:0"), variable(1, 2, "holding:500"), variable(1, 3, "holdng:0"), variable(1, 4, "holding:1")];
    await agent.apply([source(1, device.port, { variables })]);
    await expect.poll(() => of("machine-1").length).toBeGreaterThan(1);
    expect(of("machine-1").at(-1)?.readout.readings).toEqual([
      { quality: "good", value: 11 },
      { quality: "bad", fault: "not_found", detail: expect.stringContaining("exception 2") },
      { quality: "bad", fault: "address_invalid", detail: expect.stringContaining("holdng") },
      { quality: "good", value: 22 },
    ]);
    expect(report(1)?.faults.map((f) => f.variable)).toEqual(["v2", "v3"]);
    expect(report(1)?.status.state).toEqual({ type: "OK" });
  });

  it.each([
    ["details that do not validate", { details: { type: "modbus_tcp", host: "127.0.0.1", port: "x" } }, "configuration_invalid"],
    ["no details", { details: null }, "details_missing"],
    ["a type without a driver", { type: "abacus" }, "type_not_supported"],
    ["the name of an object's own property as type", { type: "constructor" }, "type_not_supported"],
    ["an interval of zero", { readout_interval: 0 }, "interval_invalid"],
  ])("makes %s that source's status, and reads the others", async (_, change, condition) => {
    const device = await plant();
    const { agent, of, report } = running();
    const bad = source(2, device.port);
    await agent.apply([{ ...bad, record: { ...bad.record, ...change } }, source(1, device.port)]);
    expect(report(2)).toMatchObject({ status: { state: { type: "ERROR", reason: { type: "UNKNOWN" } } }, error: { condition } });
    await expect.poll(() => of("machine-1").length).toBeGreaterThan(1);
  });

  it("lets two sources take turns on a device that takes one connection", async () => {
    const device = await plant({ maxConnections: 1, units: new Map([1, 2].map((unit) => [unit, { holding }])) });
    const { agent, of } = running();
    await agent.apply([
      source(1, device.port),
      source(2, device.port, { local: { unit: 2, answer_timeout: "300ms" } }),
      source(3, device.port, {}, { ephemeral_connections: true }),
    ]);
    await expect.poll(() => Math.min(...[1, 2, 3].map((n) => of(`machine-${n}`).length)), { timeout: 8000 }).toBeGreaterThan(2);
    expect(device.connections()).toBeLessThanOrEqual(1);
  });

  it("reads several units behind one gateway over one connection, whatever each source's own settings are", async () => {
    const device = await plant({ maxConnections: 1, units: new Map([1, 2, 3].map((unit) => [unit, { holding }])) });
    const { agent, of } = running();
    await agent.apply([1, 2, 3].map((n) => source(n, device.port, { local: { unit: n, max_gap: n, answer_timeout: "300ms" } })));
    await expect.poll(() => Math.min(...[1, 2, 3].map((n) => of(`machine-${n}`).length)), { timeout: 8000 }).toBeGreaterThan(4);
    expect(device.accepted()).toBe(1);
  });

  it.each([
    ["answers nothing", { silent: true } as const],
    ["is reported missing by its gateway", { exception: 11 } as const],
  ])("demotes a unit that %s: the other units of the source miss nothing, and it is read when it is back", async (_, odd) => {
    let silent = true;
    const device = await plant({
      units: new Map([1, 2].map((unit) => [unit, { holding }])),
      misbehave: ({ unit }) => (unit === 2 && silent ? odd : undefined),
    });
    const { agent, of, report } = running();
    const variables = [variable(1, 1, "2/holding:0"), variable(1, 2, "2/holding:1"), variable(1, 3, "1/holding:0")];
    await agent.apply([source(1, device.port, { variables })]);
    const last = () => of("machine-1").at(-1)?.readout.readings;
    await expect.poll(() => of("machine-1").length, { timeout: 8000 }).toBeGreaterThan(10);
    expect(last()?.[2]).toEqual({ quality: "good", value: 11 });
    expect(last()?.[0]).toMatchObject({ quality: "bad", fault: "no_answer" });
    expect(report(1)?.status.state).toEqual({ type: "OK" });
    // One request for what is well, and at most one that looks for what is not.
    expect(device.requests()).toBeLessThan(2 * of("machine-1").length + 6);
    silent = false;
    await expect.poll(() => last()?.map((r) => r?.quality), { timeout: 10_000 }).toEqual(["good", "good", "good"]);
  });

  it("names an address on which the connection ends in status, with its request, and reads its neighbours", async () => {
    const device = await plant({ misbehave: ({ start, count }) => (start <= 1 && start + count > 1 ? { hangUp: "rst" } : undefined) });
    const { agent, of, report } = running();
    await agent.apply([source(1, device.port)]);
    await expect
      .poll(() => of("machine-1").at(-1)?.readout.readings, { timeout: 8000 })
      .toEqual([
        { quality: "good", value: 11 },
        { quality: "bad", fault: "no_answer", detail: expect.stringContaining("holding register 1 of unit 1") },
      ]);
    expect(report(1)?.status.state).toEqual({ type: "OK" });
    // It is named when it has failed twice by itself.
    const named = expect.stringMatching(/^v2 \(holding:1\) has no answer.*CONNECTION_RESET.*holding register 1/);
    await expect.poll(() => textsOf(report(1)?.warnings), { timeout: 8000 }).toEqual([named]);
  });

  it("lets a unit that answers nothing cost its siblings on the same gateway little", async () => {
    const device = await plant({
      maxConnections: 1,
      units: new Map([1, 2].map((unit) => [unit, { holding }])),
      misbehave: ({ unit }) => (unit === 2 ? { silent: true } : undefined),
    });
    const { agent, of, report } = running();
    await agent.apply([source(1, device.port), source(2, device.port, { local: { unit: 2, answer_timeout: "300ms" } })]);
    await expect.poll(() => report(2)?.status.state, { timeout: 5000 }).toMatchObject({ reason: { type: "TIMEOUT" } });
    await expect.poll(() => of("machine-1").length, { timeout: 8000 }).toBeGreaterThan(20);
    expect(report(1)?.counters.failed_readouts).toBe(0);
  });

  it("gives each source of an unreachable device its exact reason, however many wait for it", async () => {
    const port = await freePort();
    const { agent, report } = running();
    const many = Array.from({ length: 12 }, (_, i) => i + 1);
    await agent.apply(many.map((n) => source(n, port)));
    for (const n of many)
      await expect.poll(() => report(n)?.status.state, { timeout: 8000 }).toMatchObject({ reason: { type: "CONNECTION_REFUSED" } });
  });

  it("opens a new connection when the old one stands and brings no good value, and not where the device says so of each", async () => {
    const mute = await plant({ misbehave: () => ({ exception: 10 }) });
    const definite = await plant({ misbehave: () => ({ exception: 2 }) });
    const { agent, report } = running();
    await agent.apply([source(1, mute.port), source(2, definite.port)]);
    await expect.poll(() => mute.accepted(), { timeout: 8000 }).toBe(2);
    await expect.poll(() => report(2)?.counters.readouts, { timeout: 8000 }).toBeGreaterThan(10);
    expect(definite.accepted()).toBe(1);
    for (const n of [1, 2]) expect(report(n)?.error?.condition).toBe("all_variables_faulted");
  });

  it("counts the ticks that a slow readout overran, and skips them", async () => {
    const device = await plant({ misbehave: () => ({ delayMs: 180 }) });
    const { agent, report } = running();
    await agent.apply([source(1, device.port)]);
    await expect.poll(() => report(1)?.counters.overruns, { timeout: 5000 }).toBeGreaterThan(4);
    const counters = report(1)?.counters;
    expect(counters?.readouts).toBeLessThan(counters?.overruns ?? 0);
  });

  it("reads once per tick, also where a readout takes less time than a timer is early", async () => {
    const device = await plant();
    const { agent, report } = running();
    await agent.apply([source(1, device.port)]);
    await expect.poll(() => report(1)?.counters.readouts).toBeGreaterThan(0);
    const [began, before] = [performance.now(), report(1)?.counters.readouts ?? 0];
    await new Promise((done) => setTimeout(done, 1500));
    const ticks = Math.ceil((performance.now() - began) / 50) + 1;
    expect((report(1)?.counters.readouts ?? 0) - before).toBeLessThanOrEqual(ticks);
  });

  it("connects only where the policy permits, also when a name comes to mean another address", async () => {
    const device = await plant();
    let address = "127.0.0.1";
    const asked: string[] = [];
    const { agent, of, report } = running({
      resolver: createResolver({ lookUp: async () => [{ address, family: 4 }], now: clock.monotonicMs }),
      permit(to, port) {
        asked.push(`${to}:${port}`);
        return to === "127.0.0.1" ? undefined : `${to} is closed`;
      },
    });
    await agent.apply([
      source(1, device.port, {}, { host: "press.lab", ephemeral_connections: true }),
      source(2, device.port, {}, { host: "127.0.0.2" }),
    ]);
    await expect.poll(() => of("machine-1").length).toBeGreaterThan(1);
    await expect
      .poll(() => report(2)?.error)
      .toMatchObject({ reason: { type: "UNKNOWN" }, condition: "forbidden_by_policy", detail: "127.0.0.2 is closed" });
    address = "127.0.0.9";
    await expect.poll(() => report(1)?.error?.detail, { timeout: 14_000, interval: 250 }).toBe("press.lab: 127.0.0.9 is closed");
    expect(new Set(asked)).toEqual(new Set([`127.0.0.1:${device.port}`, `127.0.0.2:${device.port}`, `127.0.0.9:${device.port}`]));
  });

  it("ends at once what another policy closes, begins at once what it opens, and touches nothing else", async () => {
    const [first, second, third] = [await plant(), await plant(), await plant()];
    const closed = new Set<number>();
    const { agent, of, report } = running({
      resolver: createResolver({ lookUp: async () => [{ address: "127.0.0.1", family: 4 }], now: clock.monotonicMs }),
      permit: (to, port) => (closed.has(port) ? `port ${port} of ${to} is closed` : undefined),
    });
    // Two share a connection, and one is known by a name.
    await agent.apply([
      source(1, first.port),
      source(2, second.port),
      source(3, second.port),
      source(4, third.port, {}, { host: "press.lab" }),
    ]);
    await expect.poll(() => Math.min(...[1, 2, 3, 4].map((n) => of(`machine-${n}`).length))).toBeGreaterThan(1);
    expect([first, second, third].map((device) => device.accepted())).toEqual([1, 1, 1]);
    closed.add(second.port).add(third.port);
    await agent.policyChanged();
    expect([second.connections(), third.connections()]).toEqual([0, 0]);
    for (const n of [2, 3, 4])
      await expect
        .poll(() => report(n)?.error)
        .toMatchObject({ condition: "forbidden_by_policy", detail: expect.stringContaining("is closed") });
    const readouts = report(1)?.counters.readouts ?? 0;
    // By now the tries of the closed ones are a second apart.
    await expect.poll(() => report(1)?.counters.readouts).toBeGreaterThan(readouts + 10);
    closed.delete(second.port);
    await agent.policyChanged();
    await expect.poll(() => [report(2), report(3)].map((one) => one?.status.state.type), { interval: 10 }).toEqual(["OK", "OK"]);
    // Not by a retry: what was begun again has not failed.
    expect([report(2), report(3)].map((one) => one?.counters.failed_readouts)).toEqual([0, 0]);
    expect(report(4)?.error?.condition).toBe("forbidden_by_policy");
    expect([first, second, third].map((device) => device.accepted())).toEqual([1, 2, 1]);
    expect(report(1)?.counters.readouts).toBeGreaterThan(readouts);
  });

  it("leaves no connection behind when it stops", async () => {
    const device = await plant();
    const { agent, of } = rig();
    await agent.apply([source(1, device.port), source(2, device.port, {}, { ephemeral_connections: true })]);
    await expect.poll(() => Math.min(of("machine-1").length, of("machine-2").length)).toBeGreaterThan(0);
    await agent.stop();
    await expect.poll(() => device.connections()).toBe(0);
  });
});
