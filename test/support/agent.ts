import { afterEach } from "vitest";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { type ModbusPlant, type ModbusPlantOptions, startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { Agent, type AgentDeps } from "../../src/agent/agent.ts";
import type { SourceInput } from "../../src/agent/source-spec.ts";
import { silentLog } from "../../src/model/context.ts";
import type { Layout } from "../../src/model/layout.ts";
import type { Readout } from "../../src/model/value.ts";
import type { Variable } from "../../src/model/variable.ts";
import { startClock } from "../../src/os/clock.ts";

const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
const stop = new AbortController();
export const clock = startClock(stop.signal);

interface Line {
  readonly level: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** An agent that reads Modbus unless told otherwise; `of` gives the readouts of a source, `report` its report. */
export function rig(more: Partial<AgentDeps> = {}) {
  const readouts: { readonly layout: Layout; readonly readout: Readout }[] = [];
  const lines: Line[] = [];
  const agent = new Agent({
    drivers: { modbus_tcp: { driver: async () => ({ default: modbus }) } },
    clock,
    logFor: (fields) => {
      const take = (level: string) => (more: object) => void lines.push({ level, fields: { ...fields, ...more } });
      return { ...silentLog, info: take("info"), warn: take("warn"), error: take("error") };
    },
    emit: (layout, readout) => void readouts.push({ layout, readout }),
    changed() {},
    ...more,
  });
  const of = (name: string) => readouts.filter((r) => r.layout.source.name === name);
  return { agent, lines, of, report: (n: number) => agent.reports().find((r) => r.uuid === uuid(n)) };
}

export const variable = (source: number, n: number, address: string, change: Partial<Variable> = {}): Variable => ({
  uuid: uuid(source * 1000 + n),
  data_source: uuid(source),
  name: `v${n}`,
  address,
  type: null,
  unit: null,
  scaling: null,
  comment: null,
  status: "ACTIVE",
  ...change,
});

/** A source that is read every 50 ms. */
export const source = (n: number, port: number, change: Partial<SourceInput> = {}, details: Record<string, unknown> = {}): SourceInput => ({
  record: {
    uuid: uuid(n),
    type: "modbus_tcp",
    name: `machine-${n}`,
    collector: uuid(0),
    machine: uuid(1),
    manufacturer: null,
    device_model: null,
    note: null,
    readout_interval: 50,
    readout_limit: null,
    details: { type: "modbus_tcp", host: "127.0.0.1", port, ephemeral_connections: false, ...details },
  },
  variables: [variable(n, 1, "holding:0"), variable(n, 2, "holding:1")],
  warnings: [],
  local: { connect_timeout: "1s", answer_timeout: "300ms" },
  secrets: {},
  missingSecret: undefined,
  readoutIntervalUnit: "milliseconds",
  ...change,
});

export const holding = new Map([
  [0, 11],
  [1, 22],
]);
const open: (() => Promise<unknown>)[] = [];
/** A Modbus device that is closed after the test, after the agents. */
export async function plant(options: Partial<ModbusPlantOptions> = {}): Promise<ModbusPlant> {
  const started = await startModbusPlant({ units: new Map([[1, { holding }]]), ...options });
  open.push(started.close);
  return started;
}
/** As rig; stopped after the test. */
export function running(more: Parameters<typeof rig>[0] = {}) {
  const made = rig(more);
  open.unshift(() => made.agent.stop());
  return made;
}

afterEach(async () => {
  for (const close of open.splice(0)) await close();
});
