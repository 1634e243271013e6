import path from "node:path";
import type { AnyDriver, DriverEntry } from "../../drivers/driver.ts";
import { DRIVERS } from "../../drivers/index.ts";
import { type ModbusPlantOptions, startFramed, startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import type { Simulator, StartSimulator } from "../../drivers/simulator.ts";
import { startFileSimulator } from "../../drivers/vendor_a/simulator-controllers.ts";
import { startOmronSimulator } from "../../drivers/vendor_a/simulator-omron.ts";
import { loadProfile } from "../../src/configuration/profile-file.ts";
import type { Reason } from "../../src/model/reason.ts";
import type { DataType, Value } from "../../src/model/value.ts";
import gauge from "../example/gauge/driver.ts";
import { startSimulator as startGauge } from "../example/gauge/simulator.ts";
import rack from "../support/rack/driver.ts";
import { encode, type Rack, startRack } from "../support/rack/simulator.ts";
import { startFinsRanges } from "./support/fins-ranges.ts";
import { startS7Ranges } from "./support/s7-ranges.ts";

/** A device that reads ranges, and can lack what lies between two variables. */
export interface RangeDevice {
  readonly port: number;
  /** In the order in which they lie; several are read as one by the fresh plan. */
  readonly variables: readonly { readonly address: string; readonly type: string; readonly value: Value }[];
  /** From now on the device lacks what lies right before these variables, and nothing else. */
  lack(before: readonly number[]): void;
  close(): Promise<void>;
}

/** What a simulator can do on request, where its protocol knows it. */
export interface TestSimulator extends Simulator {
  /** Loads another program: addresses are others. */
  download?(): void;
  isLocked?: boolean;
  isBusy?: boolean;
  /** If what is sent is encrypted: from now on it is kept as the device has it; the answer ends that, and gives it. */
  hear?(): () => Buffer;
}

/** What the suite has to know of a driver beyond its code. A text says why there is nothing to know. */
export interface Traits {
  readonly ranges: string | (() => Promise<RangeDevice>);
  /** True: parts of a request are refused by themselves. */
  readonly items: string | true;
  /** Words for types that are this driver's alone. */
  readonly typeWords: string | Readonly<Record<string, DataType>>;
  /** The source's reason where nothing is permitted, of a protocol that the API has one for; absent: a refusal of everything. */
  readonly lockedReason?: Reason["type"];
}

/** A driver that goes through the suite. */
export interface Subject {
  readonly type: string;
  /** If a driver goes through it more than once. Absent: the type. */
  readonly name?: string;
  /** Local options. Absent: the defaults. */
  readonly settings?: object;
  readonly traits: Traits;
  driver(): Promise<AnyDriver>;
  startSimulator(): Promise<TestSimulator>;
}

const IN_A_RUN = 3;
const RUNS = 4;
const VALUES = Array.from({ length: IN_A_RUN * RUNS }, (_, i) => 1000 + i);

/** Registers 0, 2, 4, then 14, 16, 18, and so on. */
async function startModbusRanges(framed: Pick<ModbusPlantOptions, "transport" | "framing"> = {}): Promise<RangeDevice> {
  const registerOf = (i: number) => Math.floor(i / IN_A_RUN) * 14 + (i % IN_A_RUN) * 2;
  const holding = new Map<number, number>();
  const lack = (before: readonly number[]) => {
    holding.clear();
    for (let register = 0; register <= registerOf(VALUES.length - 1); register++) holding.set(register, 0);
    for (const [i, value] of VALUES.entries()) holding.set(registerOf(i), value);
    for (const i of before) holding.delete(registerOf(i) - 1);
  };
  lack([]);
  const plant = await startModbusPlant({ ...framed, units: new Map([[1, { holding }]]) });
  const variables = VALUES.map((value, i) => ({ address: `holding:${registerOf(i)}`, type: "uint16", value }));
  return { port: plant.port, variables, lack, close: plant.close };
}

async function startRackRanges(): Promise<RangeDevice> {
  const symbols = VALUES.map((value, i) => ({
    name: `Cell.v${i}`,
    type: "INT" as const,
    words: 1,
    elements: [encode.INT(value)],
    gap: i % IN_A_RUN === IN_A_RUN - 1 ? 10 : 1,
  }));
  const device = await startRack({ symbols });
  return {
    port: device.port,
    variables: VALUES.map((value, i) => ({ address: `Cell.v${i}`, type: "int16", value })),
    lack(before) {
      device.holesBefore.clear();
      for (const i of before) device.holesBefore.add(`Cell.v${i}`);
    },
    close: device.close,
  };
}

const TRAITS: Readonly<Record<string, Traits>> = {
  modbus_tcp: {
    ranges: () => startModbusRanges(),
    items: "the device refuses a request as a whole",
    typeWords: "it has no words of its own for types",
  },
  opcua: {
    ranges: "it reads no ranges: each node is an item of its own",
    items: "each node has a status of its own",
    typeWords: "it has no words of its own for types",
  },
  vendor_a: {
    ranges: "an array has no holes, and what is read besides is read by its name",
    items: "each tag has a status of its own",
    typeWords: "it has no words of its own for types",
  },
  vendor_gateway: {
    ranges: "it reads no ranges: each item has its name",
    items: "each item has a value or an error of its own",
    typeWords: "it has no words of its own for types",
    lockedReason: "VENDOR_GATEWAY_ERROR",
  },
  fins: {
    ranges: () => startFinsRanges(VALUES),
    items: "the controller refuses a request as a whole",
    typeWords: {
      BCD: { scalar: "uint16", word: "UINT_BCD" },
      "uint_bcd[4]": { scalar: "uint16", word: "UINT_BCD", count: 4 },
      UDINT_BCD: { scalar: "uint32", word: "UDINT_BCD" },
      CHANNEL: { scalar: "uint16", word: "UINT" },
    },
  },
  odac: {
    ranges: "it reads no ranges: each parameter has a poll of its own",
    items: "each parameter has an answer of its own",
    typeWords: "it has no words of its own for types",
  },
  plastcontrol: {
    ranges: "it reads no ranges: a request is a template of the profile",
    items: "the device refuses a request as a whole",
    typeWords: "it has no words of its own for types",
  },
  vendor_b: {
    ranges: "it reads no ranges: a request is a template of the profile",
    items: "the device refuses a request as a whole",
    typeWords: "it has no words of its own for types",
  },
  s7: {
    ranges: () => startS7Ranges(VALUES),
    items: true,
    typeWords: {
      S5TIME: { scalar: "uint32", word: "S5TIME" },
      "time[4]": { scalar: "int32", word: "TIME", count: 4 },
      "WSTRING[16]": { scalar: "string", word: "WSTRING", maxBytes: 32 },
      DTL: { scalar: "string", word: "DTL" },
    },
  },
  s7plus: {
    ranges: "it reads no ranges: each symbol is an item of its own",
    items: "each symbol has a value or a refusal of its own",
    typeWords: {
      LTIME: { scalar: "int64", word: "LTIME" },
      dtl: { scalar: "string", word: "DTL" },
      "WSTRING[16]": { scalar: "string", word: "WSTRING", maxBytes: 32 },
    },
    lockedReason: "S7PLUS_ERROR",
  },
};

const traitsOf = (type: string): Traits => {
  const traits = TRAITS[type];
  if (!traits) throw new Error(`test/conformance/subjects.ts has no traits of ${type}`);
  return traits;
};

const startRackSimulator = (): Promise<Rack> => startRack({ takesItems: 5, maxItems: 8 });

/** The driver of the tests alone: it has what no shipped driver has, or not yet. */
const RACK: Subject = {
  type: "rack",
  traits: {
    ranges: startRackRanges,
    items: true,
    typeWords: {
      BCD: { scalar: "uint16", word: "BCD" },
      "bcd[4]": { scalar: "uint16", word: "BCD", count: 4 },
      S5TIME: { scalar: "uint32", word: "S5TIME" },
    },
  },
  driver: async () => rack,
  startSimulator: startRackSimulator,
};

/** The driver of docs/write-a-driver.md. */
const GAUGE: Subject = {
  type: "gauge",
  traits: {
    ranges: "it reads no ranges: each name is an item of its own",
    items: "each name has an answer of its own",
    typeWords: "it has no words of its own for types",
  },
  driver: async () => gauge,
  startSimulator: startGauge,
};

/** What the types whose protocol is not public are bound to: the profile that ships, and examples of ours. */
const PROFILES: Readonly<Record<string, string>> = {
  odac: "config/profiles/odac-host.yaml",
  plastcontrol: "drivers/plastcontrol/example-profile.yaml",
  vendor_b: "drivers/vendor_b/example-profile.yaml",
};

const profileOf = (type: string): object => {
  const file = PROFILES[type];
  return file === undefined ? {} : { profile: loadProfile(path.resolve(import.meta.dirname, "../..", file)) };
};

const registered = (type: string, entry: DriverEntry): Subject => ({
  type,
  get settings() {
    return profileOf(type);
  },
  get traits() {
    return traitsOf(type);
  },
  driver: async () => (await entry.driver()).default,
  async startSimulator() {
    const { startSimulator } = (await import(`../../drivers/${type}/simulator.ts`)) as { startSimulator: StartSimulator };
    return startSimulator();
  },
});

/** Over the transport that is not the first choice. */
const FINS_UDP: Subject = { ...registered("fins", DRIVERS["fins"] as DriverEntry), name: "fins_udp", settings: { transport: "udp" } };

/** In the other framings; answers of RTU over UDP have no id, and what a rough network does to them is in the driver's own tests. */
const modbus = (name: string, framed: Pick<ModbusPlantOptions, "transport" | "framing">, settings: object): Subject => ({
  ...registered("modbus_tcp", DRIVERS["modbus_tcp"] as DriverEntry),
  name,
  settings,
  traits: { ...traitsOf("modbus_tcp"), ranges: () => startModbusRanges(framed) },
  startSimulator: () => startFramed(framed),
});
/** The other kind of controller that the driver reads. */
const VENDOR_A_OMRON: Subject = {
  ...registered("vendor_a", DRIVERS["vendor_a"] as DriverEntry),
  name: "vendor_a_omron",
  startSimulator: () => startOmronSimulator(),
};

/** A controller with data files in the place of one with tags. */
const VENDOR_A_FILES: Subject = {
  ...registered("vendor_a", DRIVERS["vendor_a"] as DriverEntry),
  name: "vendor_a_micrologix",
  traits: { ...traitsOf("vendor_a"), items: "the controller refuses a request as a whole", ranges: "a data file has no holes" },
  startSimulator: () => startFileSimulator("micrologix"),
};

/** With values that the server sends. */
const OPCUA_SUBSCRIBE: Subject = {
  ...registered("opcua", DRIVERS["opcua"] as DriverEntry),
  name: "opcua_subscribe",
  settings: { read_mode: "subscribe", publishing_interval: 50, sampling_interval: 50 },
};

/** Every driver of the registry, and those of the tests. */
export const SUBJECTS: readonly Subject[] = [
  ...Object.entries(DRIVERS).map(([type, entry]) => registered(type, entry)),
  FINS_UDP,
  modbus("modbus_rtu", { framing: "rtu" }, { framing: "rtu" }),
  modbus("modbus_udp", { transport: "udp" }, { transport: "udp" }),
  VENDOR_A_OMRON,
  VENDOR_A_FILES,
  OPCUA_SUBSCRIBE,
  RACK,
  GAUGE,
];

export const nameOf = ({ name, type }: Subject): string => name ?? type;

export const subjectOf = (name: string): Subject => {
  const subject = SUBJECTS.find((one) => nameOf(one) === name);
  if (!subject) throw new Error(`${name} is neither in the registry nor a driver of the tests`);
  return subject;
};
