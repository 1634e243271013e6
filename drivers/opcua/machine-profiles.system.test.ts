import { DataType, VariantArrayType } from "node-opcua-client";
import { afterEach, expect, it } from "vitest";
import { connect, context, detailsOf, readTexts } from "../../test/support/opcua.ts";
import type { Discovered } from "../driver.ts";
import { machineProfile } from "./machine-profiles.ts";
import { type OpcuaSimulator, startOpcuaSimulator } from "./simulator.ts";
import type { AddressSpace } from "./simulator-space.ts";

const simulators: OpcuaSimulator[] = [];
afterEach(async () => {
  for (const simulator of simulators.splice(0)) await simulator.close();
});

async function start(fill: (space: AddressSpace) => void, models: readonly string[] = [], port = 0): Promise<OpcuaSimulator> {
  const simulator = await startOpcuaSimulator({ bulk: 1, nodesets: models, fill, port });
  simulators.push(simulator);
  return simulator;
}

async function found(simulator: OpcuaSimulator, name: string): Promise<readonly Discovered[]> {
  const session = await connect(detailsOf(simulator.port), context());
  const all: Discovered[] = [];
  try {
    for await (const one of session.discover?.({ ...context(), browsePaths: true }) ?? []) {
      const mine = machineProfile(name)?.(one);
      if (mine) all.push(mine);
    }
    return all;
  } finally {
    await session.close();
  }
}

async function read(simulator: OpcuaSimulator, addresses: readonly string[]) {
  const session = await connect(detailsOf(simulator.port), context());
  try {
    return await readTexts(session, addresses, context());
  } finally {
    await session.close();
  }
}

/** An injection moulding machine, by the names of OPC 40077: `first` moves the ids of all nodes. */
const moulding = (first: number, namespaces: readonly string[]) => (space: AddressSpace) => {
  for (const uri of namespaces) space.registerNamespace(uri);
  const [maker, em77, em83] = ["urn:maker", "IMM2MES", "GeneralTypes"].map((name) =>
    space.registerNamespace(name.startsWith("urn") ? name : `http://opcfoundation.org/UA/PlasticsRubber/${name}/`),
  ) as [Ns, Ns, Ns];
  let id = first;
  const object = (own: Ns, browseName: string, componentOf: Node | undefined) =>
    own.addObject({
      browseName,
      nodeId: `i=${id++}`,
      ...(componentOf ? { componentOf } : { organizedBy: space.rootFolder.objects }),
    });
  const top = object(maker, "IMM_MES_Interface_1", undefined);
  const jobs = object(em77, "Jobs", top);
  const values = object(em83, "ActiveJobValues", jobs);
  const status = object(em77, "MachineStatus", top);
  const add = (name: string, at: { readonly componentOf: Node } | { readonly propertyOf: Node }, dataType: DataType, value: unknown) =>
    em83.addVariable({
      browseName: name,
      nodeId: `i=${id++}`,
      ...at,
      dataType,
      value: { dataType, arrayType: VariantArrayType.Scalar, value },
    });
  add("JobCycleCounter", { componentOf: values }, DataType.UInt64, [0, 41]);
  add("LastCycleTime", { componentOf: values }, DataType.Double, 12_250);
  add("JobStatus", { propertyOf: values }, DataType.Int32, 6);
  add("MachineMode", { propertyOf: status }, DataType.Int32, 1);
  add("Private", { propertyOf: status }, DataType.Int32, 1);
};
type Ns = ReturnType<AddressSpace["registerNamespace"]>;
type Node = ReturnType<Ns["addObject"]>;

it("finds an injection moulding machine by its names, and again where ids and namespaces have changed", async () => {
  const simulator = await start(moulding(1000, []));
  const variables = await found(simulator, "euromap77");
  expect(variables.map(({ name }) => name).sort()).toEqual([
    "Jobs.ActiveJobValues.JobCycleCounter",
    "Jobs.ActiveJobValues.JobStatus",
    "Jobs.ActiveJobValues.LastCycleTime",
    "MachineStatus.MachineMode",
  ]);
  const addresses = variables.map(({ address }) => address);
  const before = await read(simulator, addresses);
  expect(before.map((one) => one.quality !== "bad" && one.value)).toEqual(expect.arrayContaining([41n, 6, 12_250, 1]));
  await simulator.close();
  simulators.length = 0;
  const again = await start(moulding(5000, ["urn:one:more"]), [], simulator.port);
  expect((await read(again, addresses)).map((one) => one.quality !== "bad" && one.value)).toEqual(
    before.map((one) => one.quality !== "bad" && one.value),
  );
});
