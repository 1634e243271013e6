import { Writer } from "./simulator-wire.ts";

/** Attributes of the session object. */
export const ATTRIBUTES = {
  fingerprint: 233,
  role: 299,
  server: 301,
  challenge: 303,
  answer: 304,
  version: 306,
  level: 1842,
  legitimate: 1846,
} as const;
const [OBJECT, END, ATTRIBUTE] = [0xa1, 0xa2, 0xa3];
const [SESSION_OBJECT, SERVER_SESSION] = [288, 287];

/** Before the 20 bytes of a challenge, or of the answer to one. */
export const USINT_ARRAY = "100214";

const text = (writer: Writer, value: string): Writer => writer.u8(0, 0x15).vlq(Buffer.byteLength(value)).bytes(Buffer.from(value));

/** Attribute 306, as a CPU 1500 has it: versions, and the device with its firmware. */
export function versionStruct(device: string): Buffer {
  const writer = new Writer().hex("0017 0000013a 823b 0004 8800 823c 0004 8701 823d 0004 84818640 823e 0004 84818540 823f");
  text(text(writer, device).hex("8240"), "2;934738");
  return writer.hex("8241 0003 0003 00").done();
}

/** Puts the session as an object with its attributes. */
export function sessionObject(writer: Writer, challenge: Buffer, version: Buffer): Writer {
  const attribute = (id: number) => writer.u8(ATTRIBUTE).vlq(id);
  writer.u8(OBJECT).u32(SESSION_OBJECT).vlq(SERVER_SESSION).vlq(1).vlq(0);
  text(attribute(ATTRIBUTES.fingerprint), "00:181B7B0847D11694");
  attribute(ATTRIBUTES.role).u8(0, 4, 2);
  text(attribute(ATTRIBUTES.server), "Server: OMSP_16.00.00.05_01.15.00.01");
  attribute(ATTRIBUTES.challenge).hex(USINT_ARRAY).bytes(challenge);
  attribute(ATTRIBUTES.version).bytes(version);
  return writer.u8(END);
}
