import type { Value } from "../../src/model/value.ts";
import type { Listening } from "../simulator.ts";
import { CipDevice } from "./simulator-device.ts";
import { DataFiles } from "./simulator-files.ts";
import { DHRIO, ENI, MICROLOGIX, PLC5, SLC } from "./simulator-identity.ts";
import { directoryOf, FILE_STATUS, FileCpu } from "./simulator-pccc.ts";

/** Controllers with data files, and what a right driver reads from them. */

export type FileFamily = "slc" | "micrologix" | "plc5";
type Variable = { readonly address: string; readonly type: string; readonly value: Value };

export interface FilledFiles {
  readonly files: DataFiles;
  readonly variables: readonly Variable[];
}

/** A file of every kind that the family has. */
export function filledFiles(family: FileFamily): FilledFiles {
  const files = new DataFiles({ isPlc5: family === "plc5" });
  const variables: Variable[] = [];
  const is = (address: string, type: string, value: Value): void => void variables.push({ address, type, value });

  files.file(7, "N", 300);
  for (const [element, value] of [-1, 32_767, -32_768, 0x1234, 42].entries()) files.word(7, element, value);
  files.word(7, 255, 2550);
  files.word(7, 299, 2990);
  is("N7:0", "INT", -1);
  is("N7:2", "INT", -32_768);
  is("N7:2", "UINT", 32_768);
  is("N7:3", "BCD", 1234);
  is("N7:0{5}", "INT[5]", [-1, 32_767, -32_768, 0x1234, 42]);
  is("N7:4/1", "BOOL", true);
  is("N7:4/0", "BOOL", false);
  is("N7:255", "INT", 2550);
  is("N7:299", "INT", 2990);
  files.file(300, "N", 3);
  files.word(300, 2, 7);
  is("N300:2", "INT", 7);

  files.file(3, "B", 20);
  files.word(3, 2, 0x8020);
  is("B3/37", "BOOL", true);
  is("B3:2/15", "BOOL", true);
  is("B3:2", "UINT", 0x8020);

  files.file(8, "F", 60);
  files.float(8, 0, 21.5);
  files.float(8, 1, -1_048_576.5);
  is("F8:0", "REAL", 21.5);
  is("F8:0{2}", "REAL[2]", [21.5, -1_048_576.5]);

  files.file(4, "T", 10);
  files.structure(4, 2, [0x6000, 500, 123]);
  is("T4:2.PRE", "INT", 500);
  is("T4:2.ACC", "INT", 123);
  is("T4:2/DN", "BOOL", true);
  is("T4:2.EN", "BOOL", false);
  is("T4:2", "string", '{"EN":false,"TT":true,"DN":true,"PRE":500,"ACC":123}');
  files.file(5, "C", 4);
  files.structure(5, 0, [0x9000, 10, -3]);
  is("C5:0.ACC", "INT", -3);
  is("C5:0/CU", "BOOL", true);
  is("C5:0/OV", "BOOL", true);
  files.file(6, "R", 4);
  files.structure(6, 1, [0x0800, 32, 5]);
  is("R6:1.LEN", "INT", 32);
  is("R6:1.POS", "INT", 5);
  is("R6:1/ER", "BOOL", true);

  files.file(9, "ST", 3);
  files.text(9, 0, "Recipe 7");
  files.text(9, 1, "odd");
  files.text(9, 2, "x".repeat(82), 900);
  is("ST9:0", "string", "Recipe 7");
  is("ST9:1", "string", "odd");
  is("ST9:2", "string", "x".repeat(82));

  files.file(2, "S", 70);
  files.word(2, 1, 0x0020);
  is("S:1/5", "BOOL", true);
  is("S:1", "UINT", 0x0020);

  if (family !== "micrologix") {
    files.file(11, "A", 10);
    files.characters(11, 0, "LOT-47");
    is("A11:0{3}", "string", "LOT-47");
  }
  if (family !== "plc5") {
    files.file(10, "L", 10);
    files.long(10, 3, -2_000_000_000);
    is("L10:3", "DINT", -2_000_000_000);
    is("L10:3/31", "BOOL", true);
    files.slot("I", 1, [0x0080, 0x0102]);
    files.slot("O", 2, [0x0001]);
    is("I:1.0/7", "BOOL", true);
    is("I:1/7", "BOOL", true);
    is("I:1.1", "UINT", 0x0102);
    is("I:1/24", "BOOL", true);
    is("O:2", "UINT", 1);
  } else {
    files.file(1, "I", 32);
    files.word(1, 0o12, 0x8000);
    files.file(0, "O", 32);
    files.word(0, 0o17, 3);
    is("I:012/17", "BOOL", true);
    is("O:017", "UINT", 3);
  }
  return { files, variables };
}

const IDENTITIES = { slc: SLC, micrologix: MICROLOGIX, plc5: PLC5 } as const;
const BULLETINS = { slc: "5/05", micrologix: "1766-LEC", plc5: "" } as const;

/** A controller of this family with filled files. */
export function fileCpu(family: FileFamily, { files } = filledFiles(family)): FileCpu {
  const takes = family === "plc5" ? "typed" : "logical";
  const cpu = new FileCpu({ files, identity: IDENTITIES[family], bulletin: BULLETINS[family], takes });
  if (family === "plc5") cpu.maxBytes = 240;
  else cpu.directory = directoryOf(files, family === "slc" ? 1 : 3);
  return cpu;
}

export interface FileDeviceOptions extends Listening {
  readonly cpu: FileCpu;
  /** Absent: the controller has the network connection itself. `dhp`: node 12 (octal) of channel A behind a module in slot 3 of a chassis. */
  readonly behind?: "eni" | "dhp";
}

export async function startFileDevice({ cpu, behind, ...where }: FileDeviceOptions): Promise<CipDevice> {
  const device = new CipDevice({ layout: behind === "dhp" ? "bridge" : "micro" });
  cpu.onViolation = (words) => device.noteViolation(words);
  if (behind === "dhp") device.slots.set(3, { kind: "dhp", identity: DHRIO, channel: 1, nodes: new Map([[0o12, cpu]]) });
  else device.slots.set(0, { kind: "files", cpu });
  if (behind === "eni") device.owner = ENI;
  await device.listen(where);
  return device;
}

/** A MicroLogix 1400 as the conformance suite asks it. */
export async function startFileSimulator(family: FileFamily = "micrologix", options: Listening = {}) {
  const filled = filledFiles(family);
  const cpu = fileCpu(family, filled);
  const device = await startFileDevice({ ...options, cpu });
  return {
    device,
    cpu,
    port: device.port,
    details: (host: string, port: number) => ({ type: "vendor_a", host, port }),
    variables: filled.variables,
    missing: { address: "N99:0", type: "INT" },
    malformed: ["N7:", "N7:0/16", "B3/", "T4:0.DNN", "N7:0{0}", "X7:0", "I5:0", "F8:0/1", "PD10:0", "N7:0.1", "N1000:0", "N7:99999"],
    connections: () => device.connections(),
    close: () => device.close(),
    get isLocked() {
      return cpu.refusesAll === FILE_STATUS.notAllowed;
    },
    set isLocked(is: boolean) {
      cpu.refusesAll = is ? FILE_STATUS.notAllowed : undefined;
    },
    get isBusy() {
      return cpu.refusesAll === FILE_STATUS.busy;
    },
    set isBusy(is: boolean) {
      cpu.refusesAll = is ? FILE_STATUS.busy : undefined;
    },
  };
}
