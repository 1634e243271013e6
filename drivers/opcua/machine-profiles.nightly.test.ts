import { nodesets } from "node-opcua-nodesets";
import { expect, it } from "vitest";
import { foundBy, readAddresses, startMachines } from "../../test/support/machine-profiles.ts";
import type { AddressSpace } from "./simulator-space.ts";

/** A machine of the type of a published model. */
const machine = (uri: string, type: string, browseName: string) => (space: AddressSpace) => {
  const found = space.findObjectType(type, space.getNamespaceIndex(uri));
  if (!found) throw new Error(`no ${type}`);
  found.instantiate({ browseName: { name: browseName, namespaceIndex: 1 }, organizedBy: space.rootFolder.objects });
};

it("finds a machine tool and a PackML machine on a server of the published node sets", async () => {
  const { di, machinery, ia, machineTool, isa95JobControl, machineryJobs, packML } = nodesets;
  const tool = machine("http://opcfoundation.org/UA/MachineTool/", "MachineToolType", "Tool");
  const packer = machine("http://opcfoundation.org/UA/PackML/", "PackMLBaseObjectType", "Packer");
  const fill = (space: AddressSpace): void => {
    tool(space);
    packer(space);
  };
  const simulator = await startMachines(fill, [di, isa95JobControl, machinery, machineryJobs, ia, machineTool, packML]);
  const ofTool = await foundBy(simulator, "machinetool");
  expect(ofTool.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["Monitoring.MachineTool.OperationMode", "Production.ActiveProgram.Name", "Identification.Manufacturer"]),
  );
  expect(ofTool.every(({ address }) => address.includes(";Tool/"))).toBe(true);
  const ofPacker = await foundBy(simulator, "packml");
  expect(ofPacker.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["Status.CurMachSpeed", "Status.UnitModeCurrent", "BaseStateMachine.MachineState.CurrentState"]),
  );
  const speed = ofPacker.find(({ name }) => name === "Status.CurMachSpeed");
  expect(await readAddresses(simulator, [speed?.address ?? ""])).toMatchObject([{ type: { scalar: "float32" } }]);
});
