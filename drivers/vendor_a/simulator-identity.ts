import { word } from "./simulator-frames.ts";

/** What a module says of itself (ODVA volume 1, 5A-2). */
export interface Identity {
  /** Absent: Rockwell Automation. */
  readonly vendor?: number;
  /** 0x0C communication adapter, 0x0E controller, 0x07 general I/O. */
  readonly deviceType: number;
  readonly productCode: number;
  readonly revision: readonly [major: number, minor: number];
  readonly serial: number;
  readonly name: string;
}

/** Rockwell Automation. */
const VENDOR = 1;
const [STATUS_OK, OPERATIONAL] = [0x0060, 3];

export const CONTROLLER: Identity = {
  deviceType: 0x0e,
  productCode: 166,
  revision: [33, 11],
  serial: 0x00c0_ffee,
  name: "1756-L83E/B",
};
export const BRIDGE: Identity = { deviceType: 0x0c, productCode: 166, revision: [11, 2], serial: 0x0b1d_6e00, name: "1756-EN2T/D" };
export const INPUTS: Identity = { deviceType: 0x07, productCode: 11, revision: [3, 4], serial: 0x0011_2233, name: "1756-IB16/A" };
export const MICRO: Identity = { deviceType: 0x0e, productCode: 0x9e, revision: [12, 11], serial: 0x0850_0001, name: "2080-LC50-24QWB" };

/** Attributes 1 to 7 of class 1. */
export function identityBytes({ vendor = VENDOR, deviceType, productCode, revision, serial, name }: Identity): Buffer {
  const head = Buffer.alloc(14);
  head.writeUInt16LE(vendor, 0);
  head.writeUInt16LE(deviceType, 2);
  head.writeUInt16LE(productCode, 4);
  head.set(revision, 6);
  head.writeUInt16LE(STATUS_OK, 8);
  head.writeUInt32LE(serial, 10);
  return Buffer.concat([head, Buffer.of(name.length), Buffer.from(name, "latin1")]);
}

/** The item of List Identity: what a module says of itself, behind where it is. */
export function identityItem(identity: Identity, address: string, port: number): Buffer {
  const place = Buffer.alloc(16);
  place.writeUInt16BE(2, 0);
  place.writeUInt16BE(port, 2);
  place.set(address.split(".").map(Number), 4);
  const item = Buffer.concat([word(1), place, identityBytes(identity), Buffer.of(OPERATIONAL)]);
  return Buffer.concat([word(1), word(0x000c), word(item.length), item]);
}

export const MICROLOGIX: Identity = {
  deviceType: 0x0e,
  productCode: 90,
  revision: [2, 15],
  serial: 0x1400_0001,
  name: "1766-L32BWA B/21.00",
};
export const SLC: Identity = {
  deviceType: 0x0e,
  productCode: 37,
  revision: [1, 11],
  serial: 0x0505_0001,
  name: "1747-L552C C/13 - DC 3.46",
};
export const PLC5: Identity = { deviceType: 0x0e, productCode: 22, revision: [1, 1], serial: 0x0005_0040, name: "1785-L40E F/C" };
export const ENI: Identity = { deviceType: 0x0c, productCode: 50, revision: [3, 22], serial: 0x000e_0001, name: "1761-NET-ENI/D" };
export const DHRIO: Identity = { deviceType: 0x0c, productCode: 15, revision: [5, 3], serial: 0x0d00_0001, name: "1756-DHRIO/D" };
