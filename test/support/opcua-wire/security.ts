import {
  constants,
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  type KeyObject,
  privateDecrypt,
  publicEncrypt,
  sign,
  X509Certificate,
} from "node:crypto";
import { all, bytes, Cursor, str, u8, u32 } from "./bytes.ts";

/** Of the server: DER, and an RSA key of 2048 bits. */
export interface WireIdentity {
  readonly certificate: Buffer;
  readonly key: KeyObject;
  readonly applicationUri: string;
}

export const BASIC256SHA256 = "http://opcfoundation.org/UA/SecurityPolicy#Basic256Sha256";
/** OPC 10000-7: RSA-OAEP with SHA-1 takes so many bytes of plain text into one block of a key of 2048 bits. */
const [PLAIN_BLOCK, CIPHER_BLOCK, SIGNATURE] = [214, 256, 256];
const HMAC = 32;
const OAEP = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: "sha1" } as const;

interface Keys {
  readonly signing: Buffer;
  readonly encrypting: Buffer;
  readonly iv: Buffer;
}

export const signedBy = (content: Buffer, key: KeyObject): Buffer => sign("sha256", content, key);

/** A channel with Basic256Sha256, SignAndEncrypt, by node:crypto alone (OPC 10000-6, 6.7). */
export class WireSecurity {
  readonly #identity: WireIdentity;
  /** DER. */
  clientCertificate: Buffer = Buffer.alloc(0);
  #client: Keys | undefined;
  #server: Keys | undefined;

  constructor(identity: WireIdentity) {
    this.#identity = identity;
  }

  /** False: the client has opened a channel without security. */
  get isOn(): boolean {
    return this.clientCertificate.length > 0;
  }

  /** Sequence header and body of a chunk; undefined: it is not secured. */
  opened(chunk: Buffer): Buffer | undefined {
    if (chunk.toString("latin1", 0, 3) === "OPN") return this.#openedAsymmetric(chunk);
    if (!this.#client) return undefined;
    const { encrypting, iv } = this.#client;
    const cipher = createDecipheriv("aes-256-cbc", encrypting, iv).setAutoPadding(false);
    return withoutPadding(Buffer.concat([cipher.update(chunk.subarray(16)), cipher.final()]), HMAC);
  }

  #openedAsymmetric(chunk: Buffer): Buffer | undefined {
    const cursor = new Cursor(chunk);
    cursor.skip(12);
    if (cursor.str() !== BASIC256SHA256) return undefined;
    this.clientCertificate = Buffer.from(cursor.bytesOf() ?? []);
    cursor.bytesOf();
    const plain: Buffer[] = [];
    for (let { at } = cursor; at < chunk.length; at += CIPHER_BLOCK)
      plain.push(privateDecrypt({ key: this.#identity.key, ...OAEP }, chunk.subarray(at, at + CIPHER_BLOCK)));
    return withoutPadding(Buffer.concat(plain), SIGNATURE);
  }

  /** Derives the keys of both directions (OPC 10000-6, 6.7.5). */
  agree(clientNonce: Buffer, serverNonce: Buffer): void {
    if (!this.isOn) return;
    this.#client = keysOf(serverNonce, clientNonce);
    this.#server = keysOf(clientNonce, serverNonce);
  }

  /** A whole chunk of `type`, such as MSGA, around sequence header and body. */
  sealed(type: string, content: Buffer): Buffer {
    return type.startsWith("OPN") ? this.#sealedAsymmetric(content) : this.#sealedSymmetric(type, content);
  }

  #sealedAsymmetric(content: Buffer): Buffer {
    const { certificate, key } = this.#identity;
    const security = all(
      u32(1),
      str(BASIC256SHA256),
      bytes(certificate),
      bytes(createHash("sha1").update(this.clientCertificate).digest()),
    );
    const plain = padded(content, PLAIN_BLOCK, SIGNATURE);
    const blocks = (plain.length + SIGNATURE) / PLAIN_BLOCK;
    const head = all(Buffer.from("OPNF"), u32(8 + security.length + blocks * CIPHER_BLOCK), security);
    const whole = all(plain, signedBy(all(head, plain), key));
    const peer = new X509Certificate(this.clientCertificate).publicKey;
    const encrypted = Array.from({ length: blocks }, (_, i) =>
      publicEncrypt({ key: peer, ...OAEP }, whole.subarray(i * PLAIN_BLOCK, (i + 1) * PLAIN_BLOCK)),
    );
    return all(head, ...encrypted);
  }

  #sealedSymmetric(type: string, content: Buffer): Buffer {
    if (!this.#server) throw new Error("no keys yet");
    const { signing, encrypting, iv } = this.#server;
    const plain = padded(content, 16, HMAC);
    const head = all(Buffer.from(type), u32(16 + plain.length + HMAC), u32(1), u32(1));
    const mac = createHmac("sha256", signing).update(all(head, plain)).digest();
    const cipher = createCipheriv("aes-256-cbc", encrypting, iv).setAutoPadding(false);
    return all(head, cipher.update(all(plain, mac)), cipher.final());
  }
}

/** So that with a signature of this length it fills whole blocks (OPC 10000-6, 6.7.2.5). */
function padded(content: Buffer, block: number, signature: number): Buffer {
  const length = (block - ((content.length + 1 + signature) % block)) % block;
  return all(content, u8(length), Buffer.alloc(length, length));
}

function withoutPadding(plain: Buffer, signature: number): Buffer {
  const end = plain.length - signature;
  return plain.subarray(0, end - 1 - plain.readUInt8(end - 1));
}

/** P_SHA256 (RFC 5246, 5). */
function keysOf(secret: Buffer, seed: Buffer): Keys {
  const hmac = (content: Buffer): Buffer => createHmac("sha256", secret).update(content).digest();
  const parts: Buffer[] = [];
  for (let a = hmac(seed); parts.length < 3; a = hmac(a)) parts.push(hmac(all(a, seed)));
  const all96 = Buffer.concat(parts);
  return { signing: all96.subarray(0, 32), encrypting: all96.subarray(32, 64), iv: all96.subarray(64, 80) };
}
