import type { Simulation } from "../model/simulation.ts";
import type { Workbench } from "../model/workbench.ts";
import { type AddOnName, type CommandIo, UsageError } from "./io.ts";

/** Loads what packages beside the collector's own bring, for the verbs that need it. */

interface AddOn {
  readonly name: AddOnName;
  /** Subject and verb of the sentence that says that it is missing. */
  readonly words: readonly [subject: string, verb: string];
}

/** The machines of `collector simulate`. Throws UsageError where they are missing, or of another version. */
export const loadSimulation = async (io: CommandIo): Promise<Simulation> => {
  const { simulation } = await load<{ readonly simulation: Simulation }>(io, {
    name: "simulators",
    words: ["the simulators are not installed", "they are"],
  });
  return ofThisVersion(io, "simulators", simulation);
};

/** The reading of captures. Throws UsageError where it is missing, or of another version. */
export const loadWorkbench = async (io: CommandIo): Promise<Workbench> => {
  const { workbench } = await load<{ readonly workbench: Workbench }>(io, {
    name: "workbench",
    words: ["what reads captures is not installed", "it is"],
  });
  return ofThisVersion(io, "workbench", workbench);
};

async function load<M>(io: CommandIo, { name, words: [missing, where] }: AddOn): Promise<M> {
  const url = io.addOn(name);
  if (!url)
    throw new UsageError(
      `${missing}: ${where} in the package collector-${name} (sudo apt install ./collector-${name}_*.deb), and in a checkout of the project`,
    );
  return (await import(url.href)) as M;
}

function ofThisVersion<T extends { readonly version: string }>(io: CommandIo, name: AddOnName, addOn: T): T {
  if (addOn.version === io.version) return addOn;
  throw new UsageError(
    `the package collector-${name} is of version ${addOn.version}, and the collector ${io.version}; install the same of both`,
  );
}
