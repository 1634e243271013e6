import type { Simulator, StartSimulator } from "../simulator.ts";
import { type CipDevice, startCipDevice } from "./simulator-device.ts";
import { STATUS } from "./simulator-program.ts";
import { filledProgram, MALFORMED } from "./simulator-tags.ts";

export { type CipMessage, LogixCpu, SERVICES, type TagRead } from "./simulator-cpu.ts";
export { CipDevice, type CipDeviceOptions, type Layout, type Misbehaviour, type Module, startCipDevice } from "./simulator-device.ts";
export { type CipStatus, COMMANDS, ENCAPSULATION_STATUS } from "./simulator-frames.ts";
export { CONTROLLER, type Identity } from "./simulator-identity.ts";
export { CONNECTION_ERRORS, MANAGER, type SizeRefusal } from "./simulator-manager.ts";
export { type Access, LogixProgram, STATUS, type TagOptions } from "./simulator-program.ts";
export { filledProgram, microProgram } from "./simulator-tags.ts";
export type { CipValue, Template } from "./simulator-types.ts";

/** A simulator with what the conformance suite can ask of it: refusing everything, and being busy. */
export interface VendorASimulator extends Simulator {
  /** The device itself, whose state a test may set. */
  readonly device: CipDevice;
  /** Every request of tags is refused: no privilege. */
  isLocked: boolean;
  /** Every read of a tag is refused for the moment: a download is under way. */
  isBusy: boolean;
}

/** A CompactLogix with a tag of every type, in connections of 4002 bytes. */
export async function startSimulator(options?: Parameters<StartSimulator>[0]): Promise<VendorASimulator> {
  const { program, variables } = filledProgram();
  const device = await startCipDevice({ ...options, program });
  return {
    device,
    port: device.port,
    details: (host, port) => ({ type: "vendor_a", host, port }),
    variables,
    missing: { address: "NoSuchTag", type: "DINT" },
    malformed: MALFORMED,
    connections: () => device.connections(),
    close: () => device.close(),
    get isLocked() {
      return device.cpu.refusesAll !== undefined;
    },
    set isLocked(is) {
      device.cpu.refusesAll = is ? STATUS.privilege : undefined;
    },
    get isBusy() {
      return device.cpu.isDownloading;
    },
    set isBusy(is) {
      device.cpu.isDownloading = is;
    },
  };
}
