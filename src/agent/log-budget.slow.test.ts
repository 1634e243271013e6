import { afterEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { defineDriver, type Request, type Session } from "../../drivers/driver.ts";
import { silentLog } from "../model/context.ts";
import { type PlainReasonType, ReasonError } from "../model/reason.ts";
import { textsOf } from "../model/testing/warnings.ts";
import { warning } from "../model/warning.ts";
import { Agent } from "./agent.ts";
import type { SourceInput } from "./source-spec.ts";

afterEach(() => void vi.useRealTimers());

/** Devices that connect as given. */
const deviceDriver = (connect: (details: { readonly host: string }) => Promise<Session<string, Request<string>>>) =>
  defineDriver({
    type: "unreachable",
    title: "Unreachable",
    details: z.object({ host: z.string() }),
    settings: z.strictObject({}),
    maxConnections: 1,
    endpoint: ({ host }) => ({ host, port: 1, transport: "tcp" as const }),
    keepsConnection: () => true,
    parseAddress: (text) => ({ address: text, type: { scalar: "bool" as const } }),
    plan: (points) => [{ points }],
    connect: ({ details }) => connect(details),
  });

/** A device that is never reached, for a reason that is another one at each try. */
function unreachable(reasons: readonly PlainReasonType[]) {
  const tries = new Map<string, number>();
  return deviceDriver(async ({ host }) => {
    const n = tries.get(host) ?? 0;
    tries.set(host, n + 1);
    throw new ReasonError(reasons[n % reasons.length] ?? "TIMEOUT", "not reached");
  });
}

/** Answers each request after two seconds. */
const slow = () =>
  deviceDriver(async () => ({
    limits: { maxPoints: 100, maxBytes: 1000, inFlight: 1 },
    alive: () => true,
    async read({ points }) {
      await new Promise((done) => setTimeout(done, 2000));
      return points.map(() => ({ quality: "good" as const, value: true }));
    },
    async close() {},
  }));

/** An agent over fake time, and how many lines it has logged. */
function agentWith(driver: ReturnType<typeof deviceDriver>) {
  vi.useFakeTimers();
  const lines: string[] = [];
  const count = (_fields: object, message: string) => void lines.push(message);
  const agent = new Agent({
    drivers: { unreachable: { driver: async () => ({ default: driver }) } },
    clock: { monotonicMs: () => Date.now(), epochMs: () => Date.now(), synced: () => true, bootedAtMs: () => 0 },
    logFor: () => ({ ...silentLog, info: count, warn: count, error: count }),
    emit() {},
    changed() {},
  });
  return { agent, lines };
}

const source = (n: number): SourceInput => {
  const uuid = `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
  return {
    record: {
      uuid,
      type: "unreachable",
      name: `machine-${n}`,
      collector: uuid,
      machine: uuid,
      manufacturer: null,
      device_model: null,
      note: null,
      readout_interval: 1,
      readout_limit: null,
      details: { type: "unreachable", host: `10.0.0.${n}` } as unknown as SourceInput["record"]["details"],
    },
    variables: [
      { uuid, data_source: uuid, name: "v", address: "a", type: null, unit: null, scaling: null, comment: null, status: "ACTIVE" },
    ],
    warnings: [],
    local: {},
    secrets: {},
    missingSecret: undefined,
    readoutIntervalUnit: "seconds",
  };
};

describe("an hour with 50 dead devices", () => {
  it.each([
    [["TIMEOUT"], 2],
    [["TIMEOUT", "NO_ROUTE_TO_HOST"], 99],
    [["TIMEOUT", "NO_ROUTE_TO_HOST", "CONNECTION_REFUSED", "HOST_DOWN"], 99],
  ] as const)(
    "whose reasons are %j makes at most %i log lines",
    async (reasons, most) => {
      const { agent, lines } = agentWith(unreachable(reasons));
      await agent.apply(Array.from({ length: 50 }, (_, i) => source(i + 1)));
      await vi.advanceTimersByTimeAsync(3_600_000);
      const tries = agent.reports().reduce((sum, { counters }) => sum + counters.failed_readouts, 0);
      await agent.stop();
      expect(tries).toBeGreaterThan(50 * 60);
      expect(lines.length).toBeGreaterThanOrEqual(reasons.length === 1 ? 2 : 50 / 10);
      expect(lines.join("\n")).toMatch(/more data sources fail with TIMEOUT: machine-\d+(, machine-\d+){4} and \d+ more/);
      expect(lines.length).toBeLessThanOrEqual(most);
    },
    60_000,
  );
});

it("100 sources that are too slow for their interval, and whose settings are odd, make no 200 warnings; status has them all", async () => {
  const { agent, lines } = agentWith(slow());
  const odd = { ...source(1), warnings: [warning("setting_without_effect", "the place in the settings is odd")] };
  await agent.apply(Array.from({ length: 100 }, (_, i) => ({ ...odd, record: source(i + 1).record })));
  await vi.advanceTimersByTimeAsync(30_000);
  const reports = agent.reports();
  const stopped = agent.stop();
  await vi.advanceTimersByTimeAsync(30_000);
  await stopped;
  expect(reports.every(({ warnings }) => textsOf(warnings).some((words) => words.includes("does not fit its interval")))).toBe(true);
  const warnings = lines.filter((line) => line.includes("does not fit its interval") || line.includes("is odd"));
  expect(warnings.length).toBeLessThanOrEqual(40);
  expect(lines.join("\n")).toMatch(/log lines of data sources were left out/);
}, 60_000);
