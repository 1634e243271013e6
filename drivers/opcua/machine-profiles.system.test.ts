import { DataType, VariantArrayType } from "node-opcua-client";
import { expect, it } from "vitest";
import { foundBy, readAddresses, startMachines } from "../../test/support/machine-profiles.ts";
import type { AddressSpace } from "./simulator-space.ts";

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
  const simulator = await startMachines(moulding(1000, []));
  const variables = await foundBy(simulator, "euromap77");
  expect(variables.map(({ name }) => name).sort()).toEqual([
    "Jobs.ActiveJobValues.JobCycleCounter",
    "Jobs.ActiveJobValues.JobStatus",
    "Jobs.ActiveJobValues.LastCycleTime",
    "MachineStatus.MachineMode",
  ]);
  const addresses = variables.map(({ address }) => address);
  const before = await readAddresses(simulator, addresses);
  expect(before.map((one) => one.quality !== "bad" && one.value)).toEqual(expect.arrayContaining([41n, 6, 12_250, 1]));
  await simulator.close();
  const again = await startMachines(moulding(5000, ["urn:one:more"]), [], simulator.port);
  expect((await readAddresses(again, addresses)).map((one) => one.quality !== "bad" && one.value)).toEqual(
    before.map((one) => one.quality !== "bad" && one.value),
  );
});
