import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { type AnyDriver, type AnySession, defineDriver, type Point } from "../../drivers/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { plant, running, source, variable } from "../../test/support/agent.ts";
import { ReasonError } from "../model/reason.ts";
import type { Warning } from "../model/warning.ts";

describe("the agent, with drivers of other kinds,", () => {
  it("gives the turn back where a driver's own mistake ends a readout, and costs the others on the device nothing", async () => {
    const device = await plant({ maxConnections: 1 });
    const wrong: AnyDriver = {
      ...modbus,
      plan() {
        throw new TypeError("a mistake in the driver");
      },
    };
    const { agent, of, report } = running({
      drivers: { modbus_tcp: { driver: async () => ({ default: modbus }) }, wrong: { driver: async () => ({ default: wrong }) } },
    });
    const bad = source(1, device.port);
    await agent.apply([{ ...bad, record: { ...bad.record, type: "wrong" } }, source(2, device.port)]);
    await expect.poll(() => report(1)?.counters.failed_readouts, { timeout: 8000 }).toBeGreaterThan(1);
    expect(report(1)?.error).toMatchObject({ condition: "internal_error", detail: expect.stringContaining("a mistake in the driver") });
    const before = of("machine-2").length;
    await expect.poll(() => of("machine-2").length, { timeout: 5000 }).toBeGreaterThan(before + 5);
    expect(report(2)?.counters.failed_readouts).toBe(0);
  });

  const holds = (points: readonly Point[], place: number) => points.some(({ index }) => index === place);
  const wrong = (): never => {
    throw new TypeError("a mistake in the driver");
  };

  it.each([
    ["parsing", { parseAddress: (text, type, settings) => (text === "holding:1" ? wrong() : modbus.parseAddress(text, type, settings)) }],
    ["planning", { plan: (points, limits, apart) => (holds(points, 1) ? wrong() : modbus.plan(points, limits, apart)) }],
    [
      "decoding",
      {
        async connect(input, ctx) {
          const session = await modbus.connect(input, ctx);
          const read: AnySession["read"] = async (request, readCtx) => {
            const readings = await session.read(request, readCtx);
            return holds(request.points, 1) ? wrong() : readings;
          };
          return Object.assign(Object.create(session) as AnySession, { read });
        },
      },
    ],
  ] satisfies readonly (readonly [string, Partial<AnyDriver>])[])(
    "an exception of a driver over one variable in %s is that variable's fault, with an alarm that ends with it",
    async (_, mistake) => {
      const device = await plant({});
      const alarms: (readonly [alarm: Warning, isOver: boolean | undefined])[] = [];
      const { planSteps: _steps, ...rest } = modbus;
      const driver = defineDriver({ ...rest, ...mistake });
      const { agent, of, report } = running({
        drivers: { modbus_tcp: { driver: async () => ({ default: driver }) } },
        alarm: (alarm, isOver) => void alarms.push([alarm, isOver]),
      });
      await agent.apply([source(1, device.port)]);
      await expect
        .poll(() => of("machine-1").at(-1)?.readout.readings[1], { timeout: 5000 })
        .toMatchObject({
          quality: "bad",
          fault: "collector_error",
          detail: expect.stringContaining("the collector itself failed: TypeError: a mistake in the driver"),
        });
      await expect.poll(() => of("machine-1").at(-1)?.readout.readings[0]).toMatchObject({ quality: "good", value: 11 });
      expect(report(1)?.status.state).toEqual({ type: "OK" });
      expect(report(1)?.counters.connects).toBe(1);
      const [[alarm, isOver] = []] = alarms;
      expect(isOver).toBeUndefined();
      expect(alarm?.text).toMatch(
        /^machine-1: v2 \(holding:1\) cannot be read: the collector itself failed: TypeError: a mistake in the driver/,
      );
      await agent.apply([]);
      await expect.poll(() => alarms.at(-1)).toMatchObject([{ code: alarm?.code, about: "machine-1" }, true]);
      expect(alarms).toHaveLength(2);
    },
  );

  it("emits what a driver gives of one variable more than once as readouts of their own, scaled, before the one with the newest", async () => {
    const device = await plant({});
    const lost = { quality: "bad", fault: "values_lost", detail: "the queue overflowed" } as const;
    let reads = 0;
    const sending: AnyDriver = {
      ...modbus,
      async connect(input, ctx) {
        const session = await modbus.connect(input, ctx);
        const read: AnySession["read"] = async (request, readCtx) => {
          const [first, ...others] = await session.read(request, readCtx);
          const earlier = [
            { quality: "good", value: 5, sourceTime: 1_795_000_000_000 } as const,
            lost,
            { quality: "good", value: 6 } as const,
          ];
          return first && ++reads === 2 ? [{ ...first, earlier }, ...others] : [...(first ? [first] : []), ...others];
        };
        return Object.assign(Object.create(session) as AnySession, { read });
      },
    };
    const { agent, of, report } = running({ drivers: { modbus_tcp: { driver: async () => ({ default: sending }) } } });
    const one = source(1, device.port);
    const scaled = one.variables.map((each, i) => (i === 0 ? { ...each, scaling: { factor: 0.5, offset: 0 } } : each));
    await agent.apply([{ ...one, variables: scaled }]);
    await expect.poll(() => of("machine-1").length, { timeout: 5000 }).toBeGreaterThan(5);
    const [, ...after] = of("machine-1");
    const readouts = after.slice(0, 4).map(({ readout }) => readout);
    expect(
      readouts.map(({ readings }) => readings.map((reading) => reading && (reading.quality === "bad" ? reading.fault : reading.value))),
    ).toEqual([
      [2.5, ...Array(scaled.length - 1).fill(undefined)],
      ["values_lost", ...Array(scaled.length - 1).fill(undefined)],
      [3, ...Array(scaled.length - 1).fill(undefined)],
      [5.5, ...(readouts[3]?.readings.slice(1).map((reading) => reading?.quality !== "bad" && reading?.value) ?? [])],
    ]);
    expect(readouts[0]?.readings[0]).toMatchObject({ sourceTime: 1_795_000_000_000 });
    const times = readouts.map(({ time }) => time);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(new Set(times).size).toBe(4);
    expect(report(1)?.status.state).toEqual({ type: "OK" });
    expect(report(1)?.counters.values_faulted).toBe(1);
  });

  it.each([
    [true, "once more on a new session at once, where the driver says that it was lost"],
    [false, "not again, where it says nothing of that"],
  ])("reads (%s) %s", async (sessionLost, _) => {
    let sessions = 0;
    const forgetful: AnyDriver = {
      ...modbus,
      async connect() {
        const first = sessions++ === 0;
        let reads = 0;
        return {
          limits: { maxPoints: 10, maxBytes: 1000, inFlight: 1 },
          async read() {
            if (first && ++reads > 1) throw new ReasonError("UNKNOWN", "the session is not known", { sessionLost });
            return [{ quality: "good", value: 1 }];
          },
          alive: () => true,
          close: async () => {},
        };
      },
      plan: (points) => [{ points }],
    };
    const { agent, of, report } = running({ drivers: { modbus_tcp: { driver: async () => ({ default: forgetful }) } } });
    await agent.apply([source(1, 1, { variables: [variable(1, 1, "holding:0")] })]);
    await expect.poll(() => sessions).toBe(2);
    await expect.poll(() => of("machine-1").length).toBeGreaterThan(2);
    expect(report(1)?.counters.failed_readouts).toBe(sessionLost ? 0 : 1);
  });

  it("goes on without a driver that does not end, and closes what it has open, once", async () => {
    const device = await plant({ maxConnections: 1 });
    let closes = 0;
    let comeLate = () => {};
    const deaf: AnyDriver = {
      ...modbus,
      connect: async () => ({
        limits: { maxPoints: 10, maxBytes: 1000, inFlight: 1 },
        read: () =>
          new Promise((done) => {
            comeLate = () => done([{ quality: "good", value: 1 }]);
          }),
        alive: () => true,
        close: async () => void closes++,
      }),
      plan: (points) => [{ points }],
    };
    const { agent, of } = running({
      drivers: { modbus_tcp: { driver: async () => ({ default: modbus }) }, deaf: { driver: async () => ({ default: deaf }) } },
    });
    const bad = source(1, device.port);
    const asking = { ...bad, record: { ...bad.record, type: "deaf" } };
    await agent.apply([asking]);
    await expect.poll(() => agent.reports()[0]?.counters.connects).toBe(1);
    const began = performance.now();
    await agent.apply([source(2, device.port)]);
    expect(performance.now() - began).toBeLessThan(15_000);
    await expect.poll(() => of("machine-2").length, { timeout: 5000 }).toBeGreaterThan(1);
    expect(closes).toBe(1);
    comeLate();
    await nextTurn();
    expect(closes).toBe(1);
  }, 30_000);

  it("makes a source that cannot be started its own trouble, also for the configurations that follow", async () => {
    const device = await plant();
    const wrong: AnyDriver = {
      ...modbus,
      connectionKey() {
        throw new TypeError("a mistake in the driver");
      },
    };
    const { agent, of, report } = running({
      drivers: { modbus_tcp: { driver: async () => ({ default: modbus }) }, wrong: { driver: async () => ({ default: wrong }) } },
    });
    const bad = source(1, device.port);
    await agent.apply([{ ...bad, record: { ...bad.record, type: "wrong" } }, source(2, device.port)]);
    expect(report(1)?.error).toMatchObject({ condition: "internal_error", detail: "a mistake in the driver" });
    await expect.poll(() => of("machine-2").length).toBeGreaterThan(1);
    await agent.apply([source(3, device.port)]);
    await expect.poll(() => of("machine-3").length).toBeGreaterThan(1);
  });

  it("leaves a device alone for as long as it asks for, but not a new configuration of it", async () => {
    const device = await plant();
    let connects = 0;
    const full: AnyDriver = {
      ...modbus,
      canDiscover: true,
      async connect() {
        connects++;
        throw new ReasonError("UNKNOWN", "too many sessions", { retryAfterMs: 20_000 });
      },
    };
    const { agent, report } = running({ drivers: { modbus_tcp: { driver: async () => ({ default: full }) } } });
    const began = Date.now();
    await agent.apply([source(1, device.port)]);
    await expect.poll(() => report(1)?.counters.failed_readouts).toBe(1);
    expect(report(1)).toMatchObject({ status: { state: { type: "ERROR" } }, error: { detail: "too many sessions" }, discovers: true });
    const askedForMs = Date.parse(report(1)?.next_retry_at ?? "") - began;
    expect(askedForMs).toBeGreaterThanOrEqual(19_000);
    expect(askedForMs).toBeLessThan(30_000);
    // The agent by itself would have tried again after a second.
    await new Promise((done) => setTimeout(done, 2000));
    expect(connects).toBe(1);
    await agent.apply([source(1, device.port, { variables: [variable(1, 1, "holding:1")] })]);
    await expect.poll(() => connects).toBe(2);
  });

  it("takes from a device that answered in part the pause that it asks for", async () => {
    let reads = 0;
    const busy: AnyDriver = {
      ...modbus,
      plan: (points) => points.map((point) => ({ points: [point] })),
      connect: async () => ({
        limits: { maxPoints: 1, maxBytes: 1, inFlight: 1 },
        async read() {
          if (reads++ % 3 === 0) return [{ quality: "good", value: 1 }];
          throw new ReasonError("TIMEOUT", "busy", { retryAfterMs: 1200 });
        },
        alive: () => true,
        close: async () => {},
      }),
    };
    const { agent, of, report } = running({ drivers: { modbus_tcp: { driver: async () => ({ default: busy }) } } });
    await agent.apply([source(1, 1, { variables: [0, 1, 2].map((at) => variable(1, at, `holding:${at}`)) })]);
    await expect.poll(() => report(1)?.next_retry_at).toEqual(expect.any(String));
    expect(report(1)?.status.state).toEqual({ type: "OK" });
    await expect.poll(() => of("machine-1").length, { timeout: 8000 }).toBeGreaterThanOrEqual(2);
    const [first, second] = of("machine-1").map(({ readout }) => readout.time);
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(1190);
  });

  it("asks for no more than the source's own settings let it, of what the device grants", async () => {
    const sizes = new Map<number, Set<number>>();
    const modest: AnyDriver = {
      ...modbus,
      settings: z.strictObject({ most: z.int() }),
      parseAddress: (text) => ({ address: text, type: { scalar: "uint16" } }),
      limits: (granted, settings) => ({ ...granted, maxPoints: (settings as { most: number }).most }),
      plan: (points, { maxPoints }) =>
        Array.from({ length: Math.ceil(points.length / maxPoints) }, (_, i) => ({
          points: points.slice(i * maxPoints, (i + 1) * maxPoints),
        })),
      async connect({ settings }) {
        const { most } = settings as { most: number };
        return {
          limits: { maxPoints: 100, maxBytes: 1000, inFlight: 1 },
          async read({ points }) {
            sizes.set(most, (sizes.get(most) ?? new Set()).add(points.length));
            return points.map(() => ({ quality: "good", value: 1 }));
          },
          alive: () => true,
          close: async () => {},
        };
      },
    };
    const { agent, of } = running({ drivers: { modbus_tcp: { driver: async () => ({ default: modest }) } } });
    const variables = (n: number) => Array.from({ length: 12 }, (_, i) => variable(n, i, `a${i}`));
    await agent.apply([
      source(1, 1, { variables: variables(1), local: { most: 3 } }),
      source(2, 2, { variables: variables(2), local: { most: 6 } }),
    ]);
    await expect.poll(() => Math.min(of("machine-1").length, of("machine-2").length)).toBeGreaterThan(1);
    expect(sizes).toEqual(
      new Map([
        [3, new Set([3])],
        [6, new Set([6])],
      ]),
    );
  });

  it("gives drivers of two types that read one device each a memory of its own", async () => {
    const found = new Map<string, unknown[]>([
      ["one", []],
      ["two", []],
    ]);
    const remembering = (type: string): AnyDriver => ({
      ...modbus,
      keepsConnection: () => false,
      plan: (points) => [{ points }],
      async connect(_, { device }) {
        found.get(type)?.push(device?.get("last"));
        device?.set("last", type);
        return {
          limits: { maxPoints: 10, maxBytes: 1000, inFlight: 1 },
          read: async ({ points }) => points.map(() => ({ quality: "good", value: 1 })),
          alive: () => true,
          close: async () => {},
        };
      },
    });
    const entry = (type: string) => ({ driver: async () => ({ default: remembering(type) }) });
    const { agent } = running({ drivers: { one: entry("one"), two: entry("two") } });
    const of = (n: number, type: string) => ({ ...source(n, 1), record: { ...source(n, 1).record, type } });
    await agent.apply([of(1, "one"), of(2, "two")]);
    const counts = () => [...found.values()].map(({ length }) => length);
    await expect.poll(() => Math.min(...counts()), { timeout: 8000 }).toBeGreaterThan(3);
    for (const [type, values] of found) expect(values.slice(0, 4)).toEqual([undefined, type, type, type]);
  });
});
