/** What a module says of itself. CIP Vol. 1, 5-2.2. Pure. */
export interface Identity {
  readonly vendor: number;
  readonly deviceType: number;
  readonly revision: string;
  readonly serial: number;
  readonly name: string;
}

const FIXED_BYTES = 14;
/** Programmable logic controller. */
const CONTROLLER = 0x0e;

/** Undefined: the bytes are no identity. */
export function parseIdentity(bytes: Buffer, at: number, end: number): Identity | undefined {
  if (end - at < FIXED_BYTES + 1) return undefined;
  const nameAt = at + FIXED_BYTES + 1;
  const name = bytes.toString("latin1", nameAt, Math.min(end, nameAt + (bytes[at + FIXED_BYTES] ?? 0)));
  return {
    vendor: bytes.readUInt16LE(at),
    deviceType: bytes.readUInt16LE(at + 2),
    revision: `${bytes[at + 6]}.${String(bytes[at + 7]).padStart(3, "0")}`,
    serial: bytes.readUInt32LE(at + 10),
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a device names itself with any bytes.
    name: name.replaceAll(/[\0-\x1f\x7f]/g, "").trim(),
  };
}

/** ODVA's vendor list. */
const OMRON = 47;

export const isOmron = ({ vendor }: Pick<Identity, "vendor">): boolean => vendor === OMRON;
export const isController = ({ deviceType }: Identity): boolean => deviceType === CONTROLLER;
/** It is reached without a route, and takes no multiple service packets. */
export const isMicro800 = ({ name }: Identity): boolean => /^2080/.test(name);

/** `1756-L85E/B LOGIX5585E, revision 33.011, serial number 00C0FFEE`. */
export const identityWords = ({ name, revision, serial }: Identity): string =>
  `${name === "" ? "a module without a name" : name}, revision ${revision}, serial number ${serial.toString(16).toUpperCase().padStart(8, "0")}`;
