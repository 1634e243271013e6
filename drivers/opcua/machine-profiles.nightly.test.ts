import { nodesets } from "node-opcua-nodesets";
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
  const simulator = await start(fill, [di, isa95JobControl, machinery, machineryJobs, ia, machineTool, packML]);
  const ofTool = await found(simulator, "machinetool");
  expect(ofTool.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["Monitoring.MachineTool.OperationMode", "Production.ActiveProgram.Name", "Identification.Manufacturer"]),
  );
  expect(ofTool.every(({ address }) => address.includes(";Tool/"))).toBe(true);
  const ofPacker = await found(simulator, "packml");
  expect(ofPacker.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["Status.CurMachSpeed", "Status.UnitModeCurrent", "BaseStateMachine.MachineState.CurrentState"]),
  );
  const speed = ofPacker.find(({ name }) => name === "Status.CurMachSpeed");
  expect(await read(simulator, [speed?.address ?? ""])).toMatchObject([{ type: { scalar: "float32" } }]);
});
