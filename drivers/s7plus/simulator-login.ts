import { createDecipheriv, createHash, timingSafeEqual } from "node:crypto";
import { hex, Reader, WireError } from "./simulator-wire.ts";

const [USINT_ARRAY, BLOB_VALUE] = ["100214", "0014"];
/** Of TLS's exporter, without a context. */
export const EXPORTER = { label: "EXPERIMENTAL_OMS", bytes: 32 } as const;

const sha1 = (bytes: Uint8Array | string): Buffer => createHash("sha1").update(bytes).digest();
/** The key of a log-in, from what TLS exports or from the key of the attempt before. */
export const nextKey = (bytes: Uint8Array): Buffer => createHash("sha256").update(bytes).digest();
const isSame = (one: Buffer, other: Buffer): boolean => one.length === other.length && timingSafeEqual(one, other);

/** True: it is the answer to the challenge of one who knows the password. */
export function isRightAnswer(value: Buffer, challenge: Buffer, password: string | undefined): boolean {
  if (password === undefined || value.toString("hex", 0, 3) !== USINT_ARRAY) return false;
  const expected = sha1(password).map((byte, i) => byte ^ (challenge[i] ?? 0));
  return isSame(value.subarray(3), Buffer.from(expected));
}

/** True: a password, or a user name and its password, are in what was encrypted with this key. */
export function isRightLogin(
  value: Buffer,
  key: Buffer,
  challenge: Buffer,
  { password, users }: { readonly password: string | undefined; readonly users: ReadonlyMap<string, string> },
): boolean {
  const login = openLogin(value, key, challenge.subarray(0, 16));
  if (login?.type === 1) return password !== undefined && isSame(login.secret, sha1(password));
  const ofUser = login && users.get(login.user);
  return login?.type === 2 && ofUser !== undefined && isSame(login.secret, Buffer.from(ofUser));
}

interface Login {
  readonly type: number;
  readonly user: string;
  readonly secret: Buffer;
}

/** What is in the encrypted answer; undefined: it was made with another key, or is none. */
function openLogin(value: Buffer, key: Buffer, iv: Buffer): Login | undefined {
  if (value.toString("hex", 0, 2) !== BLOB_VALUE) return undefined;
  try {
    const blob = blobOf(new Reader(value.subarray(2)));
    const decipher = createDecipheriv("aes-256-cbc", key, iv);
    const reader = new Reader(Buffer.concat([decipher.update(blob), decipher.final()]));
    reader.expect(hex("001700009dd082bb510004"), "the type");
    const type = reader.vlq();
    reader.expect(hex("82bb520014"), "the user");
    const user = blobOf(reader).toString();
    reader.expect(hex("82bb530014"), "the secret");
    return { type, user, secret: Buffer.from(blobOf(reader)) };
  } catch {
    return undefined;
  }
}

function blobOf(reader: Reader): Buffer {
  if (reader.vlq() !== 0) throw new WireError("the root of a blob");
  return reader.take(reader.vlq());
}
