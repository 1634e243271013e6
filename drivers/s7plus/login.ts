import { createCipheriv, createHash } from "node:crypto";
import { BytesOut } from "./bytes-out.ts";

/** Which way of logging in a CPU's firmware knows. */
export type LoginKind = "legacy" | "new" | "unsupported" | "unknown";

/** `1;6ES7 511-1AK02-0AB0;V2.9`: the three digits of the model, the rest of the order number, the firmware. */
const DEVICE = /^\d+;\s*[0-9A-Z]{3}[17] ?(\d)\d\d([^;]*);\s*[VS](\d{1,3})\.(\d{1,3})/;
/** Firmware from which a family knows TLS, and from which the new log-in, as major * 100 + minor. */
const FAMILIES: Readonly<Record<string, readonly [tls: number, newLogin: number]>> = {
  // S7-1500, ET 200SP
  "5": [209, 301],
  // S7-1200
  "2": [403, 407],
  // Software controllers; nothing says from when on they know the new one.
  "6": [2109, Number.POSITIVE_INFINITY],
};
/** Order numbers of the S7-1200 G2, whose versions begin again. */
const IS_G2 = /50-0XB0/;

/** By what the CPU says it is. Pure. */
export function loginKindOf(device: string | undefined): LoginKind {
  const [, family = "", rest = "", major, minor] = DEVICE.exec(device ?? "") ?? [];
  const firmware = Number(major) * 100 + Number(minor);
  const known = FAMILIES[family];
  if (family === "2" && IS_G2.test(rest)) return "new";
  if (!known || Number.isNaN(firmware)) return "unknown";
  const [tls, newLogin] = known;
  return firmware < tls ? "unsupported" : firmware < newLogin ? "legacy" : "new";
}

/** Of the challenge, which the legacy answer is as long as. */
export const CHALLENGE_BYTES = 20;

const sha1 = (text: string): Buffer => createHash("sha1").update(text, "utf8").digest();

/** The value of attribute 304: SHA-1 of the password, XOR the challenge, as an array of USInts. Pure. */
export function legacyAnswer(password: string, challenge: Uint8Array): Buffer {
  const hash = sha1(password);
  const answer = Buffer.from(challenge.subarray(0, CHALLENGE_BYTES).map((byte, i) => byte ^ (hash[i] ?? 0)));
  return new BytesOut().u8(0x10, 0x02).vlq32(answer.length).put(answer).done();
}

/** Structure of a log-in and its elements. */
const LOGIN = { struct: 40_400, type: 40_401, user: 40_402, secret: 40_403 } as const;
const [PASSWORD_ALONE, USER_AND_PASSWORD] = [1, 2];

const putBlob = (out: BytesOut, id: number, bytes: Uint8Array): BytesOut =>
  out.vlq32(id).u8(0x00, 0x14, 0x00).vlq32(bytes.length).put(bytes);

/** Who logs in, before it is encrypted: a password alone goes as its SHA-1. No user: "". Pure. */
export function loginStructure(user: string, password: string): Buffer {
  const isUser = user !== "";
  const out = new BytesOut().u8(0x00, 0x17).u32(LOGIN.struct);
  out
    .vlq32(LOGIN.type)
    .u8(0x00, 0x04)
    .vlq32(isUser ? USER_AND_PASSWORD : PASSWORD_ALONE);
  putBlob(out, LOGIN.user, Buffer.from(user, "utf8"));
  putBlob(out, LOGIN.secret, isUser ? Buffer.from(password, "utf8") : sha1(password));
  return out.u8(0).done();
}

/**
 * The value of attribute 1846: the structure in AES-256-CBC, with the SHA-256 of what the TLS session exports as its key and the beginning of
 * the challenge as its initial vector. Pure.
 */
export function newAnswer(user: string, password: string, challenge: Uint8Array, exported: Uint8Array): Buffer {
  const key = createHash("sha256").update(exported).digest();
  const cipher = createCipheriv("aes-256-cbc", key, challenge.subarray(0, 16));
  const encrypted = Buffer.concat([cipher.update(loginStructure(user, password)), cipher.final()]);
  return new BytesOut().u8(0x00, 0x14, 0x00).vlq32(encrypted.length).put(encrypted).done();
}
