import { controllerWith, FinsMemory, startFinsPlc } from "../../drivers/fins/simulator.ts";
import { CONTROLLER, LogixCpu, LogixProgram, startCipDevice } from "../../drivers/vendor_a/simulator.ts";
import type { SourceInput } from "../../src/agent/source-spec.ts";
import { type DeadUnits, startGateway } from "./gateway.ts";
import { sourceOf } from "./rig.ts";

/** Units behind one address of which some go silent. */
export interface Site {
  readonly sources: readonly SourceInput[];
  /** Units that do not answer, from 1; can be changed while it runs. */
  kill(unit: number): void;
  close(): Promise<void>;
}

export interface SiteOptions {
  readonly units: number;
  readonly intervalMs: number;
  /** Requests of each readout; drivers that pack what they read into one message take one. */
  readonly requests: number;
}

const NETWORK = 3;
const LINE_MS = 5;
/** Behind the modules that the simulated chassis has. */
const FIRST_SLOT = 5;

type Details = { readonly type: string } & Readonly<Record<string, unknown>>;

/** A source of one unit: `details` and addresses in the words of its type. */
function unitSource(unit: number, port: number, intervalMs: number, details: Details, addresses: readonly string[]): SourceInput {
  const one = sourceOf(`unit-${unit}`, "127.0.0.1", port, intervalMs);
  const [variable] = one.variables;
  if (!variable) throw new Error("a source of the rig has variables");
  const variables = addresses.map((address, i) => ({ ...variable, uuid: `${i}`, name: `v${i}`, address }));
  const own = { ...(one.record.details as object), ...details };
  return { ...one, record: { ...one.record, type: details.type, details: own }, variables };
}

const unitsOf = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i + 1);

/** Modbus units behind a serial gateway. */
export async function modbusSite(kind: DeadUnits, { units, intervalMs, requests }: SiteOptions): Promise<Site> {
  const gateway = await startGateway(kind);
  const addressesOf = (unit: number) => Array.from({ length: requests }, (_, i) => `${unit}/holding:${1000 * i}`);
  return {
    sources: unitsOf(units).map((unit) => unitSource(unit, gateway.port, intervalMs, { type: "modbus_tcp" }, addressesOf(unit))),
    kill: (unit) => void gateway.dead.add(unit),
    close: () => gateway.close(),
  };
}

/** Controllers of another network behind an Omron controller that relays. */
export async function finsSite({ units, intervalMs }: SiteOptions): Promise<Site> {
  const memoryOf = (): FinsMemory => {
    const memory = new FinsMemory();
    memory.create("D", 100);
    return memory;
  };
  const plc = await startFinsPlc({ memory: memoryOf() });
  const dead = new Set<number>();
  plc.answerDelayMs = LINE_MS;
  const nodes = new Map(unitsOf(units).map((unit) => [unit, controllerWith(memoryOf())]));
  plc.networks.set(NETWORK, { gateway: { network: 1, node: 20 }, nodes });
  plc.misbehave = ({ to }) => (to.network === NETWORK && dead.has(to.node) ? { isSilent: true } : undefined);
  const detailsOf = (unit: number) => ({
    type: "fins",
    target_plc: "Cs1OrNewer",
    local_address: "0.0.0",
    remote_address: `${NETWORK}.${unit}.0`,
  });
  return {
    sources: unitsOf(units).map((unit) => unitSource(unit, plc.port, intervalMs, detailsOf(unit), ["D10"])),
    kill: (unit) => void dead.add(unit),
    close: () => plc.close(),
  };
}

/** Controllers in the slots of a chassis behind one Ethernet module. */
export async function cipSite({ units, intervalMs }: SiteOptions): Promise<Site> {
  const device = await startCipDevice({ layout: "bridge" });
  device.answerDelayMs = LINE_MS;
  for (const unit of unitsOf(units)) {
    const own = new LogixProgram();
    own.tag("Speed", "DINT", unit);
    device.slots.set(FIRST_SLOT + unit, { kind: "cpu", cpu: new LogixCpu(own, CONTROLLER) });
  }
  const sources = unitsOf(units).map((unit) => {
    const one = unitSource(unit, device.port, intervalMs, { type: "vendor_a" }, ["Speed"]);
    return { ...one, local: { ...one.local, path: `1,${FIRST_SLOT + unit}` } };
  });
  return { sources, kill: (unit) => void device.slots.set(FIRST_SLOT + unit, { kind: "silent" }), close: () => device.close() };
}
