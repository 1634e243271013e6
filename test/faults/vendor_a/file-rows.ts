import { type FileFamily, fileCpu, startFileDevice } from "../../../drivers/vendor_a/simulator-controllers.ts";
import { FILE_STATUS, type FileCpu, type FileStatus } from "../../../drivers/vendor_a/simulator-pccc.ts";
import { type Bench, listAll, type Row, readOnce } from "./rows.ts";

interface Asked {
  readonly family?: FileFamily;
  readonly behind?: "eni" | "dhp";
  readonly address?: string;
  readonly local?: object;
  /** Once it is looked up, before it is read. */
  readonly before?: (cpu: FileCpu) => void;
}

/** Reads one address of a controller with data files. */
const read =
  (change: (cpu: FileCpu) => void, { family = "micrologix", behind, address = "N7:0", local = {}, before }: Asked = {}) =>
  async (bench: Bench): Promise<unknown> => {
    const cpu = fileCpu(family);
    change(cpu);
    const device = await startFileDevice({ cpu, ...(behind && { behind }) });
    bench.later(() => device.close());
    const path = behind === "dhp" ? { path: "1,3,A:12" } : {};
    const asked = { local: { ...path, ...local }, tags: [address], ...(before && { before: () => before(cpu) }) };
    return readOnce(bench, device.port, asked, device);
  };

type Scope = "points" | "busy" | "silent" | "everything";
const status = (what: string, fault: string, scope: Scope, answer: FileStatus, detail: RegExp, asked: Asked = {}): Row => ({
  group: "files",
  what,
  fault,
  scope,
  detail,
  run: read(() => {}, {
    ...asked,
    before: (cpu) => {
      cpu.refusesAll = answer;
    },
  }),
});
const asked = (what: string, address: string, fault: string, detail: RegExp, more: Asked = {}): Row => ({
  group: "files",
  what,
  fault,
  scope: "points",
  detail,
  run: read(() => {}, { ...more, address }),
});
const dhp = { behind: "dhp" } as const;

/** A command to a device with a network connection of its own, or behind an ENI, that has no answer. */
const silent = (run: (bench: Bench, port: number) => Promise<unknown>, behind?: "eni") => async (bench: Bench) => {
  const device = await startFileDevice({ cpu: fileCpu("micrologix"), ...(behind && { behind }) });
  bench.later(() => device.close());
  device.misbehave = ({ service }) => (service === 0x4b ? { silent: true } : undefined);
  return run(bench, device.port);
};
const listing = (change: (cpu: FileCpu) => void) => async (bench: Bench) => {
  const cpu = fileCpu("micrologix");
  change(cpu);
  const device = await startFileDevice({ cpu });
  bench.later(() => device.close());
  return listAll(bench, device.port);
};

export const FILE_ROWS: readonly Row[] = [
  asked("there is no such file", "N99:0", "not_found", /N99:0: PCCC status 0xF0\/0x06 \(there is no such file or element/),
  asked(
    "the file is shorter than the range",
    "N7:290{20}",
    "out_of_range",
    /N7:290\.\.309: PCCC status 0xF0\/0x07 \(the file is of the wrong size/,
  ),
  asked("the file of an SLC or MicroLogix has another letter", "F7:0", "type_mismatch", /PCCC status 0xF0\/0x11 \(illegal data type/),
  asked(
    "the file of a PLC-5 has another letter",
    "F7:0",
    "type_mismatch",
    /the file holds type 4 in elements of 2 bytes, and an F file has type 8 in 4/,
    {
      family: "plc5",
    },
  ),
  asked("inputs of a PLC-5 are not written in octal", "I:018", "address_invalid", /numbered in octal, without 8 and 9/, { family: "plc5" }),
  asked("the family has no such files", "L10:0", "not_found", /a PLC-5 has no L files for this/, { family: "plc5" }),
  asked("the address of a tag for a controller with data files", "Motor.Speed", "not_found", /a MicroLogix has data files and no tags/),
  status(
    "the controller does not know the command",
    "device_error",
    "points",
    { sts: 0x10 },
    /0x10 \(illegal command or format: set family/,
  ),
  status(
    "the address is wrong, or memory is protected",
    "out_of_range",
    "points",
    { sts: 0x50 },
    /0x50 \(address problem or memory protection/,
  ),
  status(
    "the controller permits no reading",
    "access_denied",
    "everything",
    { sts: 0x60 },
    /0x60 \(the function is not allowed: permit reading/,
  ),
  status("access to one file is denied", "access_denied", "points", FILE_STATUS.denied, /0xF0\/0x0B \(permit reading/),
  status("the answer would be too large", "out_of_range", "points", FILE_STATUS.tooLarge, /0xF0\/0x09 \(too large/),
  status("the file was deleted", "not_found", "points", { sts: 0xf0, ext: 0x13 }, /0xF0\/0x13 \(a deleted area/),
  status("another node has the file open", "device_error", "busy", { sts: 0xf0, ext: 0x1a }, /0xF0\/0x1A \(another node has the file open/),
  status("the resource is not there at this moment", "device_error", "busy", FILE_STATUS.busy, /0xF0\/0x1F \(not available at this moment/),
  status(
    "the module on the way cannot buffer the command",
    "device_error",
    "busy",
    { sts: 0x90 },
    /0x90 \(the module on the way cannot buffer/,
  ),
  status("a program is downloaded", "device_error", "busy", { sts: 0xb0 }, /0xB0 \(a program is being downloaded/),
  status("the controller has a hardware fault", "device_error", "everything", { sts: 0x40 }, /0x40 \(the controller has a hardware fault/),
  status("the node does not take the message", "no_answer", "silent", FILE_STATUS.noNode, /0x02 \(the node does not take the message/, dhp),
  status("the node does not answer in time", "no_answer", "silent", { sts: 0x05 }, /0x05 \(the node does not answer in time/, dhp),
  status("the controller behind the bridge is missing", "no_answer", "silent", { sts: 0x30 }, /0x30 \(the controller is missing/, {
    behind: "eni",
  }),
  status("a PCCC status that is in no list", "device_error", "points", { sts: 0xf0, ext: 0x77 }, /0xF0\/0x77 \(not in the protocol's list/),
  {
    group: "files",
    what: "the device takes no PCCC commands",
    fault: "device_error",
    scope: "everything",
    detail: /status 0x08 \(the device takes no PCCC commands/,
    run: read((cpu) => {
      cpu.hasObject = false;
    }),
  },
  {
    group: "files",
    what: "there is no node behind the DH+ module",
    reason: "TIMEOUT",
    detail: /DH\+ channel A, node 13 \(octal\) behind slot 3: .*0x02 \(the node does not take the message/,
    run: read(() => {}, { ...dhp, local: { path: "1,3,A:13" } }),
  },
  {
    group: "files",
    what: "the controller behind a bridge does not say what it is",
    reason: "UNKNOWN",
    condition: "configuration_invalid",
    detail: /the controller does not say what it is \(0x[0-9a-f]*\); set family to slc, micrologix or plc5/,
    run: read(
      (cpu) => {
        cpu.change = (reply) => (reply[0] === 0x46 ? Buffer.concat([reply.subarray(0, 4), Buffer.alloc(24)]) : reply);
      },
      { behind: "eni" },
    ),
  },
  {
    group: "files",
    what: "the controller behind a bridge refuses to say what it is",
    reason: "UNKNOWN",
    condition: "configuration_invalid",
    detail: /the diagnostic status of the controller: PCCC status 0x10/,
    run: read(
      (cpu) => {
        cpu.refuse = ({ cmd }) => (cmd === 0x06 ? FILE_STATUS.command : undefined);
      },
      { behind: "eni" },
    ),
  },
  {
    group: "files",
    what: "the controller behind a bridge gives no answer to the question what it is",
    reason: "TIMEOUT",
    detail: /no answer within 500 ms to the diagnostic status of the controller$/,
    run: silent((bench, port) => readOnce(bench, port, { tags: ["N7:0"] }), "eni"),
  },
  {
    group: "files",
    what: "a command has no answer",
    reason: "TIMEOUT",
    detail: /no answer within 500 ms to N7:0$/,
    run: silent((bench, port) => readOnce(bench, port, { tags: ["N7:0"] })),
  },
  {
    group: "files",
    what: "`browse` where the directory is refused",
    fault: "not_found",
    scope: "points",
    detail: /the file directory: PCCC status 0xF0\/0x06/,
    run: listing((cpu) => {
      cpu.directory = undefined;
    }),
  },
  {
    group: "files",
    what: "`browse` where a piece of the directory is longer than requested",
    reason: "UNKNOWN",
    condition: "protocol_violation",
    detail: /88 bytes answer a read of 80 of the directory$/,
    run: listing((cpu) => {
      cpu.change = (reply) => (reply.length > 80 ? Buffer.concat([reply, Buffer.alloc(8)]) : reply);
    }),
  },
  {
    group: "files",
    what: "`browse` where the directory has no answer",
    reason: "TIMEOUT",
    detail: /no answer within 500 ms to the file directory from byte 0 on$/,
    run: silent(listAll),
  },
  {
    group: "files",
    what: "an answer has the number of another command",
    reason: "UNKNOWN",
    condition: "protocol_violation",
    detail: /PCCC reply 65535 answers request \d+$/,
    run: read((cpu) => {
      cpu.change = (reply) => Buffer.concat([reply.subarray(0, 2), Buffer.of(0xff, 0xff), reply.subarray(4)]);
    }),
  },
  {
    group: "files",
    what: "an answer has fewer bytes than were asked for",
    reason: "UNKNOWN",
    condition: "protocol_violation",
    detail: /1 bytes answer a read of 2$/,
    run: read((cpu) => {
      cpu.change = (reply) => reply.subarray(0, -1);
    }),
  },
];
