import { afterEach, expect, it, vi } from "vitest";
import type { AnyDriver, AnySession } from "../../drivers/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { readingOf as pluginReading } from "../../drivers/plugin/values.ts";
import { itemReading } from "../../drivers/vendor_gateway/values.ts";
import { rig, source, variable } from "../../test/support/agent.ts";
import { ReasonError } from "../model/reason.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import type { Reading } from "../model/value.ts";
import type { SourceInput } from "./source-spec.ts";

// A file of its own: the clock that other tests of the agent share goes on under fake timers, and takes their time over.
afterEach(() => void vi.useRealTimers());

/** Each step of fake time takes a turn of the real event loop: few readouts keep the test short on a busy machine. */
const INTERVAL_MS = 1000;

it("loading a driver is no time of its devices", { timeout: 60_000 }, async () => {
  vi.useFakeTimers();
  let isLoaded = false;
  let loads = 0;
  const answers: AnySession = {
    limits: { maxPoints: 10, maxBytes: 1000, inFlight: 1 },
    read: async () => [{ quality: "good", value: 1 }],
    alive: () => true,
    close: async () => {},
  };
  const heavy: AnyDriver = {
    ...modbus,
    load() {
      if (isLoaded) return undefined;
      loads++;
      return new Promise((done) =>
        setTimeout(() => {
          isLoaded = true;
          done();
        }, 60_000),
      );
    },
    connect: async (_, { signal }) => {
      signal.throwIfAborted();
      return answers;
    },
  };
  const fake = { monotonicMs: () => Date.now(), epochMs: () => Date.now(), synced: () => true, bootedAtMs: () => 0 };
  const { agent, of, lines, report } = rig({ drivers: { modbus_tcp: { driver: async () => ({ default: heavy }) } }, clock: fake });
  const input = source(1, 502, { variables: [variable(1, 1, "holding:0")] });
  await agent.apply([{ ...input, record: { ...input.record, readout_interval: INTERVAL_MS } }]);
  await vi.advanceTimersByTimeAsync(55_000);
  expect([loads, of("machine-1").length, report(1)?.error]).toEqual([1, 0, null]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect([loads, of("machine-1").length > 2]).toEqual([1, true]);
  expect(lines.filter(({ level }) => level === "warn" || level === "error")).toEqual([]);
  const stopping = agent.stop();
  await vi.advanceTimersByTimeAsync(20_000);
  await stopping;
});

/** The ninth pause after the steady ones, of two sources: their fifth each. */
const LONG_DRAW = 8;

it("a source that another one's return has woken early is read at each interval from then on", { timeout: 60_000 }, async () => {
  vi.useFakeTimers();
  // Both come again after a second, but for one pause of half a minute.
  let draws = 0;
  const random = vi.spyOn(Math, "random").mockImplementation(() => (draws++ === LONG_DRAW ? 1 : 0));
  let isUp = false;
  const answers: AnySession = {
    limits: { maxPoints: 10, maxBytes: 1000, inFlight: 1 },
    read: async () => [{ quality: "good", value: 1 }],
    alive: () => true,
    close: async () => {},
  };
  const connect = async () => {
    if (!isUp) throw new ReasonError("UNKNOWN", "garbage", { condition: "protocol_violation" });
    return answers;
  };
  const fake = { monotonicMs: () => Date.now(), epochMs: () => Date.now(), synced: () => true, bootedAtMs: () => 0 };
  const driver = { ...modbus, connect } as AnyDriver;
  const { agent, of } = rig({ drivers: { modbus_tcp: { driver: async () => ({ default: driver }) } }, clock: fake });
  const inputs = [1, 2].map((n) => {
    const input = source(n, 502, { variables: [variable(n, 1, "holding:0")] });
    return { ...input, record: { ...input.record, readout_interval: INTERVAL_MS } };
  });
  await agent.apply(inputs);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(draws).toBeGreaterThan(LONG_DRAW);
  isUp = true;
  await vi.advanceTimersByTimeAsync(15_000);
  for (const name of ["machine-1", "machine-2"]) expect(of(name).length).toBeGreaterThanOrEqual(10);
  random.mockRestore();
  const stopping = agent.stop();
  await vi.advanceTimersByTimeAsync(20_000);
  await stopping;
});

const NEVER: Promise<never> = new Promise(() => {});
/** Deaf to its signal, a whole time-out (10 s) and five seconds more. */
const DEAF: readonly (readonly [string, Partial<AnySession>])[] = [
  ["reading", { read: () => NEVER }],
  [
    "looking up addresses",
    {
      // biome-ignore lint/correctness/useYield: it never comes to one.
      async *prepare() {
        await NEVER;
      },
    },
  ],
];

it.each(DEAF)(
  "the agent says what is wrong with a driver that does not end %s, and reads the others on the device meanwhile",
  {
    timeout: 60_000,
  },
  async (_, never) => {
    vi.useFakeTimers();
    let connects = 0;
    let closed = 0;
    const session = (read: () => Promise<readonly Reading[]>): AnySession => ({
      limits: { maxPoints: 10, maxBytes: 1000, inFlight: 1 },
      read,
      alive: () => true,
      close: async () => {},
    });
    const deaf: AnyDriver = {
      ...modbus,
      async connect() {
        connects++;
        const close = async () => void closed++;
        return { ...session(async () => []), close, ...never };
      },
    };
    const well: AnyDriver = { ...modbus, connect: async () => session(async () => [{ quality: "good", value: 1 }]) };
    const fake = { monotonicMs: () => Date.now(), epochMs: () => Date.now(), synced: () => true, bootedAtMs: () => 0 };
    const drivers = { modbus_tcp: { driver: async () => ({ default: well }) }, deaf: { driver: async () => ({ default: deaf }) } };
    const { agent, of, report } = rig({ drivers, clock: fake });
    const every = (input: SourceInput): SourceInput => ({ ...input, record: { ...input.record, readout_interval: INTERVAL_MS } });
    const bad = every(source(1, 502, { variables: [variable(1, 1, "holding:0")], local: { prepare_timeout: "10s" } }));
    const variables = [variable(2, 1, "holding:0")];
    await agent.apply([{ ...bad, record: { ...bad.record, type: "deaf" } }, every(source(2, 502, { variables }))]);
    await vi.advanceTimersByTimeAsync(15_500);
    expect(report(1)?.error).toMatchObject({ condition: "internal_error", detail: expect.stringContaining("did not end the readout") });
    await vi.advanceTimersByTimeAsync(90_000);
    expect(connects).toBeGreaterThan(1);
    expect(closed).toBeGreaterThanOrEqual(connects - 1);
    expect(of("machine-2").length).toBeGreaterThan(20);
    const stopping = agent.stop();
    await vi.advanceTimersByTimeAsync(20_000);
    await stopping;
  },
);

/** As these drivers take an answer apart. */
const TIMED: readonly (readonly [string, (value: number, time: string) => Reading])[] = [
  ["a plugin", (value, time) => pluginReading({ value, quality: "good", source_time: time }, { scalar: "float64" })],
  ["a gateway", (value, time) => itemReading({ value, type: "float64", quality: 192, time }, { scalar: "float64" }).reading],
];
const HOUR_MS = 3_600_000;

it.each(TIMED)(
  "a device clock that is off by hours behind %s is a warning, and times of nothing are neither a clock nor published",
  { timeout: 60_000 },
  async (_, readingOf) => {
    vi.useFakeTimers({ now: Date.UTC(2026, 10, 20, 9) });
    const read = async (): Promise<readonly Reading[]> => [
      readingOf(1, "1601-01-01T00:00:00Z"),
      readingOf(2, "1970-01-01T00:00:00Z"),
      readingOf(3, "9999-12-31T23:59:59Z"),
      readingOf(4, new Date(Date.now() - 3 * HOUR_MS).toISOString()),
    ];
    const session: AnySession = { limits: { maxPoints: 10, maxBytes: 1000, inFlight: 1 }, read, alive: () => true, close: async () => {} };
    const driver: AnyDriver = { ...modbus, connect: async () => session };
    const fake = { monotonicMs: () => Date.now(), epochMs: () => Date.now(), synced: () => true, bootedAtMs: () => 0 };
    const { agent, of, report } = rig({ drivers: { modbus_tcp: { driver: async () => ({ default: driver }) } }, clock: fake });
    const variables = [0, 1, 2, 3].map((n) => variable(1, n + 1, `holding:${n}`));
    const input = source(1, 502, { variables });
    await agent.apply([{ ...input, record: { ...input.record, readout_interval: INTERVAL_MS } }]);
    await vi.advanceTimersByTimeAsync(45_000);
    const times = of("machine-1")
      .at(-1)
      ?.readout.readings.map((reading) => reading?.quality === "good" && [reading.value, reading.sourceTime !== undefined]);
    expect(times).toEqual([
      [1, false],
      [2, false],
      [3, false],
      [4, true],
    ]);
    expect(codesOf(report(1)?.warnings)).toContain("device_clock_differs");
    expect(codesOf(report(1)?.warnings)).toContain("source_times_missing");
    expect(textsOf(report(1)?.warnings)).toEqual([
      "3 variables come with the device time 1601-01-01 (v1, for one), which is not a time: the time of the readout is used",
      expect.stringContaining("the device's clock is about 3 h behind this machine's"),
    ]);
    const stopping = agent.stop();
    await vi.advanceTimersByTimeAsync(20_000);
    await stopping;
  },
);
