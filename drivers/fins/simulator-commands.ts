import { END_CODES, type FinsAnswer, type FinsCommand } from "./simulator-frames.ts";
import type { FinsMemory, ItemRequest } from "./simulator-memory.ts";
import { bcd } from "./simulator-values.ts";

/** The commands that read. Everything else is counted as a violation. */
export const READ_COMMANDS = {
  memory: 0x0101,
  multiple: 0x0104,
  controllerData: 0x0501,
  controllerStatus: 0x0601,
  clock: 0x0701,
} as const;

/** What one command may ask for, by the network on the way that takes least (Omron W227). */
export interface FinsLimits {
  /** Bytes of data in one answer. */
  maxBytes: number;
  /** Elements of one memory area read. */
  maxElements: number;
  /** Addresses of one multiple memory area read. */
  maxAddresses: number;
  /** End codes of what is above them. */
  overBytes: number;
  overAddresses: number;
}

const overflow = { overBytes: END_CODES.responseTooLong, overAddresses: END_CODES.commandTooLong };
/** Ethernet and Controller Link; SYSMAC LINK and DeviceNet; C-series controllers. */
export const LIMITS = {
  ethernet: { maxBytes: 1998, maxElements: 1998, maxAddresses: 167, ...overflow },
  sysmacLink: { maxBytes: 538, maxElements: 538, maxAddresses: 89, ...overflow },
  cSeries: { maxBytes: 512, maxElements: 256, maxAddresses: 128, ...overflow },
} as const satisfies Readonly<Record<string, FinsLimits>>;

/** What a controller says of itself. */
export interface FinsIdentity {
  /** At most 20 characters each. */
  model: string;
  version: string;
}

/** A controller: what answers commands behind a network node. */
export interface FinsController {
  readonly memory: FinsMemory;
  readonly limits: FinsLimits;
  readonly identity: FinsIdentity;
  readonly status: FinsStatus;
  /** Undefined: it has no clock. */
  readonly now: (() => Date) | undefined;
  /** Commands that this model does not know. */
  readonly unknownCommands: ReadonlySet<number>;
}

/** What controller status read gives. */
export interface FinsStatus {
  /** 0 stop, 1 run, 0x80 standby. */
  run: number;
  /** 0 PROGRAM, 2 MONITOR, 4 RUN. */
  mode: number;
  fatal: number;
  nonFatal: number;
}

/** An answer, and the items of memory that it was about. */
export interface Executed extends FinsAnswer {
  readonly items: readonly ItemRequest[];
}

const [ADDRESS_BYTES, CONTROLLER_DATA_BYTES, STATUS_BYTES] = [4, 92, 26];
const NO_DATA: Buffer = Buffer.alloc(0);

const ended = (endCode: number, items: readonly ItemRequest[] = []): Executed => ({ endCode, data: NO_DATA, items });

/** Undefined: it is none of the commands that read. */
export function execute(controller: FinsController, { code, parameters }: FinsCommand): Executed | undefined {
  const isKnown = !controller.unknownCommands.has(code);
  switch (code) {
    case READ_COMMANDS.memory:
      return isKnown ? readMemory(controller, parameters) : ended(END_CODES.undefinedCommand);
    case READ_COMMANDS.multiple:
      return isKnown ? readMultiple(controller, parameters) : ended(END_CODES.undefinedCommand);
    case READ_COMMANDS.controllerData:
      return isKnown ? controllerData(controller, parameters) : ended(END_CODES.undefinedCommand);
    case READ_COMMANDS.controllerStatus:
      return isKnown ? controllerStatus(controller, parameters) : ended(END_CODES.undefinedCommand);
    case READ_COMMANDS.clock:
      return isKnown ? clock(controller, parameters) : ended(END_CODES.undefinedCommand);
    default:
      return undefined;
  }
}

function readMemory({ memory, limits }: FinsController, parameters: Buffer): Executed {
  if (parameters.length < ADDRESS_BYTES + 2) return ended(END_CODES.commandTooShort);
  if (parameters.length > ADDRESS_BYTES + 2) return ended(END_CODES.commandTooLong);
  const [area, address, bit, count] = [parameters[0] ?? 0, parameters.readUInt16BE(1), parameters[3] ?? 0, parameters.readUInt16BE(4)];
  const { item, answer } = memory.read(area, address, bit, count);
  // Single bits of a C-series controller are read by addresses alone.
  if (memory.family === "c" && item.kind === "bit") return ended(END_CODES.noSuchArea, [item]);
  if (count > limits.maxElements) return ended(limits.overBytes, [item]);
  if (typeof answer === "number") return ended(answer, [item]);
  return answer.length > limits.maxBytes ? ended(limits.overBytes, [item]) : { endCode: END_CODES.normal, data: answer, items: [item] };
}

function readMultiple({ memory, limits }: FinsController, parameters: Buffer): Executed {
  if (parameters.length === 0 || parameters.length % ADDRESS_BYTES !== 0) return ended(END_CODES.itemCount);
  const items: ItemRequest[] = [];
  const parts: Buffer[] = [];
  let refused: number | undefined;
  for (let at = 0; at < parameters.length; at += ADDRESS_BYTES) {
    const area = parameters[at] ?? 0;
    const { item, answer } = memory.read(area, parameters.readUInt16BE(at + 1), parameters[at + 3] ?? 0, 1);
    items.push(item);
    if (typeof answer === "number") refused ??= answer;
    else parts.push(Buffer.of(area), answer);
  }
  if (items.length > limits.maxAddresses) return ended(limits.overAddresses, items);
  if (refused !== undefined) return ended(refused, items);
  const data = Buffer.concat(parts);
  return data.length > limits.maxBytes ? ended(limits.overBytes, items) : { endCode: END_CODES.normal, data, items };
}

/** As a CP1L-EL20 lays it out: 10 K of program, 23, 10,768 words of data memory, 8 K of timers. */
const AREA_DATA = Buffer.of(0, 10, 23, 0x2a, 0x10, 8, 0, 0, 0, 0, 0, 0);

function controllerData({ identity, memory }: FinsController, parameters: Buffer): Executed {
  if (parameters.length > 1 || (parameters[0] ?? 0) > 1) return ended(END_CODES.parameter);
  const data = Buffer.alloc(CONTROLLER_DATA_BYTES);
  data.write(
    identity.model.padEnd(20, " ").replace(/ +$/, (spaces) => `\0${spaces.slice(1)}`),
    0,
    20,
    "latin1",
  );
  data.write(identity.version.padEnd(20, " "), 20, 20, "latin1");
  data.set(AREA_DATA, 80);
  // CV has two bytes for each remote I/O, and no others.
  const units = Buffer.alloc(memory.family === "cs" ? 66 : 67);
  const parts = parameters.length === 0 ? [data, units] : [parameters[0] === 0 ? data : units];
  return { endCode: END_CODES.normal, data: Buffer.concat(parts), items: [] };
}

function controllerStatus({ status }: FinsController, parameters: Buffer): Executed {
  if (parameters.length > 0) return ended(END_CODES.commandTooLong);
  const data = Buffer.alloc(STATUS_BYTES);
  data.set([status.run, status.mode]);
  data.writeUInt16BE(status.fatal, 2);
  data.writeUInt16BE(status.nonFatal, 4);
  return { endCode: END_CODES.normal, data, items: [] };
}

function clock({ now }: FinsController, parameters: Buffer): Executed {
  if (parameters.length > 0) return ended(END_CODES.commandTooLong);
  if (!now) return ended(END_CODES.noClock);
  const at = now();
  const parts = [at.getFullYear() % 100, at.getMonth() + 1, at.getDate(), at.getHours(), at.getMinutes(), at.getSeconds(), at.getDay()];
  return { endCode: END_CODES.normal, data: Buffer.from(parts.map(bcd)), items: [] };
}
