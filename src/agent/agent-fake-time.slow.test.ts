import { afterEach, expect, it, vi } from "vitest";
import type { AnyDriver, AnySession } from "../../drivers/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { rig, source, variable } from "../../test/support/agent.ts";
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
