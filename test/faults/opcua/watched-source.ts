import driver from "../../../drivers/opcua/driver.ts";
import { Agent, type AgentDeps } from "../../../src/agent/agent.ts";
import { silentLog } from "../../../src/model/context.ts";
import type { Layout } from "../../../src/model/layout.ts";
import type { Readout } from "../../../src/model/value.ts";
import { startClock } from "../../../src/os/clock.ts";
import { SessionHost } from "../../../src/threads/session/host.ts";
import { remoteDriver } from "../../../src/threads/session/remote-drivers.ts";
import { detailsOf } from "../../support/opcua.ts";

const UUID = "00000000-0000-4000-8000-000000000001";
const INTERVAL_MS = 100;

export interface WatchedSourceOptions {
  readonly port: number;
  /** Local settings. */
  readonly local?: Record<string, unknown>;
  readonly variables: readonly { readonly name: string; readonly address: string }[];
  /** The session runs in a thread of its own. */
  readonly isRemote?: boolean;
  /** What is kept of the source over restarts of the collector. */
  readonly keptOf?: AgentDeps["keptOf"];
  /** Runs when the test is over, the last first. */
  readonly endings: (() => unknown)[];
}

/** One source on an agent: its readouts, and every state that it was in. */
export async function watchSource({ port, local = {}, variables, isRemote = false, keptOf, endings }: WatchedSourceOptions) {
  const stop = new AbortController();
  const readouts: { readonly layout: Layout; readonly readout: Readout }[] = [];
  const states: string[] = [];
  const sessions = isRemote
    ? new SessionHost({ entry: new URL("../../../src/threads/session/worker.ts", import.meta.url), workerData: {}, log: silentLog })
    : undefined;
  if (sessions) endings.push(() => sessions.stop(5000));
  const agent = new Agent({
    drivers: { opcua: { driver: async () => ({ default: sessions ? remoteDriver(driver, sessions) : driver }) } },
    clock: startClock(stop.signal),
    logFor: () => silentLog,
    ...(keptOf && { keptOf }),
    emit: (layout, readout) => void readouts.push({ layout, readout }),
    changed: () => void states.push(report()?.status.state.type ?? "none"),
  });
  const report = () => agent.reports()[0];
  endings.push(async () => {
    await agent.stop();
    stop.abort();
  });
  await agent.apply([
    {
      record: {
        uuid: UUID,
        type: "opcua",
        name: "press",
        collector: UUID,
        machine: UUID,
        manufacturer: null,
        device_model: null,
        note: null,
        readout_interval: INTERVAL_MS,
        readout_limit: null,
        details: detailsOf(port),
      },
      variables: variables.map(({ name, address }, n) => ({
        uuid: `00000000-0000-4000-8000-0000000001${String(n).padStart(2, "0")}`,
        data_source: UUID,
        name,
        address,
        type: null,
        unit: null,
        scaling: null,
        comment: null,
        status: "ACTIVE" as const,
      })),
      warnings: [],
      local: { connect_timeout: "2s", answer_timeout: "2s", ...local },
      secrets: {},
      missingSecret: undefined,
      readoutIntervalUnit: "milliseconds",
    },
  ]);
  /** Readouts in which the first variable is good. */
  const good = () => readouts.filter(({ readout }) => readout.readings[0]?.quality === "good").length;
  return { report, good, states, readouts };
}
