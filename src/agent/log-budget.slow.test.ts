import { afterEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { defineDriver } from "../../drivers/driver.ts";
import { silentLog } from "../model/context.ts";
import { type PlainReasonType, ReasonError } from "../model/reason.ts";
import { Agent } from "./agent.ts";
import type { SourceInput } from "./source-spec.ts";

afterEach(() => void vi.useRealTimers());

/** A device that is never reached, for a reason that is another one at each try. */
function unreachable(reasons: readonly PlainReasonType[]) {
  const tries = new Map<string, number>();
  return defineDriver({
    type: "unreachable",
    title: "Unreachable",
    details: z.object({ host: z.string() }),
    settings: z.strictObject({}),
    maxConnections: 1,
    endpoint: ({ host }) => ({ host, port: 1, transport: "tcp" as const }),
    keepsConnection: () => true,
    parseAddress: (text) => ({ address: text, type: { scalar: "bool" as const } }),
    plan: (points) => [{ points }],
    async connect({ details: { host } }) {
      const n = tries.get(host) ?? 0;
      tries.set(host, n + 1);
      throw new ReasonError(reasons[n % reasons.length] ?? "TIMEOUT", "not reached");
    },
  });
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
    [["TIMEOUT"], 50],
    [["TIMEOUT", "NO_ROUTE_TO_HOST"], 99],
    [["TIMEOUT", "NO_ROUTE_TO_HOST", "CONNECTION_REFUSED", "HOST_DOWN"], 99],
  ] as const)(
    "whose reasons are %j makes at most %i log lines",
    async (reasons, most) => {
      vi.useFakeTimers();
      let lines = 0;
      const count = () => void lines++;
      const driver = unreachable(reasons);
      const agent = new Agent({
        drivers: { unreachable: { driver: async () => ({ default: driver }) } },
        clock: { monotonicMs: () => Date.now(), epochMs: () => Date.now(), synced: () => true, bootedAtMs: () => 0 },
        logFor: () => ({ ...silentLog, info: count, warn: count, error: count }),
        emit() {},
        changed() {},
      });
      await agent.apply(Array.from({ length: 50 }, (_, i) => source(i + 1)));
      await vi.advanceTimersByTimeAsync(3_600_000);
      const tries = agent.reports().reduce((sum, { counters }) => sum + counters.failed_readouts, 0);
      await agent.stop();
      expect(tries).toBeGreaterThan(50 * 60);
      expect(lines).toBeGreaterThanOrEqual(50);
      expect(lines).toBeLessThanOrEqual(most);
    },
    60_000,
  );
});
