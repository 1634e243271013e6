import { onTestFinished } from "vitest";
import type { Discovered } from "../../drivers/driver.ts";
import { machineProfile } from "../../drivers/opcua/machine-profiles.ts";
import { type OpcuaSimulator, startOpcuaSimulator } from "../../drivers/opcua/simulator.ts";
import type { AddressSpace } from "../../drivers/opcua/simulator-space.ts";
import { connect, context, detailsOf, readTexts } from "./opcua.ts";

/** Servers with machines, and what a profile finds on them. */

export async function startMachines(
  fill: (space: AddressSpace) => void,
  models: readonly string[] = [],
  port = 0,
): Promise<OpcuaSimulator> {
  const simulator = await startOpcuaSimulator({ bulk: 1, nodesets: models, fill, port });
  onTestFinished(() => simulator.close());
  return simulator;
}

export async function foundBy(simulator: OpcuaSimulator, name: string): Promise<readonly Discovered[]> {
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

export async function readAddresses(simulator: OpcuaSimulator, addresses: readonly string[]) {
  const session = await connect(detailsOf(simulator.port), context());
  try {
    return await readTexts(session, addresses, context());
  } finally {
    await session.close();
  }
}
