import type { Identity } from "../identity.ts";
import type { FileFamily } from "./files.ts";

/** A controller with data files, as it says it. */
export interface FileController {
  readonly family: FileFamily;
  /** `1766-LEC`, `5/05`; empty: it says nothing. */
  readonly name: string;
}

const ROCKWELL = 1;
const MICROLOGIX = /^176[1-6]-L|^MicroLogix/i;
const SLC = /^1747-L|^5\/0\d/;
const PLC5 = /^1785-L|^PLC-?5/i;

function familyByName(name: string): FileFamily | undefined {
  if (MICROLOGIX.test(name)) return "micrologix";
  if (SLC.test(name)) return "slc";
  return PLC5.test(name) ? "plc5" : undefined;
}

/** By the identity object; undefined: another kind of device. Pure. */
export function familyByIdentity({ vendor, name }: Identity): FileController | undefined {
  const family = vendor === ROCKWELL ? familyByName(name) : undefined;
  return family && { family, name };
}

/** Serial behind it: its identity is its own, and not the controller's. */
export const isSerialBridge = ({ vendor, name }: Identity): boolean => vendor === ROCKWELL && /^1761-NET-ENI/i.test(name);

const [NAME_AT, NAME_BYTES] = [5, 11];
/** Byte 1: of an SLC or MicroLogix, and of a PLC-5. */
const [SLC_EXTENDER, PLC5_EXTENDER] = [0xee, 0xeb];

/** By the data of a reply to diagnostic status (1770-6.5.16, chapter 10, as independent clients read it). Undefined: they do not tell it. Pure. */
export function familyByStatus(data: Buffer): FileController | undefined {
  const name = data
    .toString("latin1", NAME_AT, NAME_AT + NAME_BYTES)
    .replaceAll(/[^\x20-\x7e]/g, "")
    .trim();
  const family = familyByName(name) ?? (/^176[1-6]/.test(name) ? "micrologix" : undefined);
  if (family) return { family, name };
  if (data[1] === PLC5_EXTENDER) return { family: "plc5", name: "" };
  return data[1] === SLC_EXTENDER ? { family: "slc", name } : undefined;
}

/** Data bytes of one answer of older processors, of the others, and of a PLC-5 with room for the type. 1770-6.5.16; clients' trackers. */
const [SMALL_BYTES, USUAL_BYTES, INTERNETWORK_BYTES, TYPED_BYTES] = [82, 236, 225, 234];

/** Data bytes that an answer may have; `isBehind`: a bridge is on the way. Pure. */
export function answerBytesOf({ family, name }: FileController, isBehind: boolean): number {
  if (family === "plc5" || family === "logix") return TYPED_BYTES;
  if (/^5\/0[12]\b/.test(name) || /^1747-L5[12]/.test(name)) return SMALL_BYTES;
  return isBehind ? INTERNETWORK_BYTES : USUAL_BYTES;
}
