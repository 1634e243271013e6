import { BinaryStream } from "node-opcua-binary-stream";

/** What an encrypted message looked like before encryption: an encoded body, or a request that is about to be encoded. */
export interface Encodable {
  readonly schema: { readonly encodingDefaultBinary?: { readonly namespace: number; readonly value: unknown } };
  encode(stream: BinaryStream): void;
  binaryStoreSize(): number;
}

/**
 * The body that a chunk without security holds (OPC 10000-6, 6.7.2), which of a message's first chunk begins with its encoding; undefined
 * for HEL and ERR. Pure.
 */
export function requestBody(chunk: Uint8Array): Buffer | undefined {
  const view = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
  const type = view.toString("latin1", 0, 3);
  if (type === "HEL" || type === "ERR") return undefined;
  if (type === "OPN") {
    let at = 12;
    for (let field = 0; field < 3; field++) at += 4 + Math.max(0, view.readInt32LE(at));
    return view.subarray(at + 8);
  }
  return view.subarray(24);
}

/**
 * What gives the body with which each request begins, of all the chunks that go one way on one connection, in their order; undefined for
 * HEL and for chunks that go on with a request.
 */
export function createRequestBodies(): (chunk: Uint8Array) => Buffer | undefined {
  let goesOn = false;
  return (chunk) => {
    const body = goesOn ? undefined : requestBody(chunk);
    goesOn = chunk[3] === MORE;
    return body;
  };
}

/**
 * True: a chunk is of a request with this number of its encoding, or goes on with one; of all the chunks that go out on one connection, in
 * their order, whose bodies are not encrypted.
 */
export function createChunksOf(encoding: number): (chunk: Uint8Array) => boolean {
  const bodyOf = createRequestBodies();
  let isOf = false;
  return (chunk) => {
    const body = bodyOf(chunk);
    if (body) isOf = body.length >= 4 && body.readUInt16LE(0) === 1 && body.readUInt16LE(2) === encoding;
    return isOf;
  };
}

/** `C`: the message goes on in another chunk (OPC 10000-6, 6.7.2.2). */
const MORE = 0x43;

/** The four-byte form of a numeric node id of namespace 0 (OPC 10000-6, 5.2.2.9), as node-opcua writes encodings; empty for any other. */
export function encodingBytes({ schema }: Pick<Encodable, "schema">): Buffer {
  const id = schema.encodingDefaultBinary;
  const value = typeof id?.value === "number" ? id.value : -1;
  return id?.namespace === 0 && value >= 0 && value <= 0xffff ? Buffer.of(1, 0, value & 0xff, value >> 8) : Buffer.alloc(0);
}

/** A message as one chunk without security; its sequence number is 0. For a tap: it never goes over a wire. */
export function plainChunk(type: string, channelId: number, policyUri: string, message: Encodable | Buffer): Buffer {
  const body = Buffer.isBuffer(message) ? message : encoded(message);
  const uri = Buffer.from(policyUri);
  const security = type === "OPN" ? Buffer.alloc(4 + uri.length + 8, 0xff) : Buffer.alloc(4);
  if (type === "OPN") {
    security.writeInt32LE(uri.length);
    uri.copy(security, 4);
  }
  const head = Buffer.alloc(12);
  head.write(`${type.slice(0, 3)}F`, "latin1");
  head.writeUInt32LE(head.length + security.length + 8 + body.length, 4);
  head.writeUInt32LE(channelId >>> 0, 8);
  return Buffer.concat([head, security, Buffer.alloc(8), body]);
}

function encoded(message: Encodable): Buffer {
  const stream = new BinaryStream(message.binaryStoreSize());
  message.encode(stream);
  return Buffer.concat([encodingBytes(message), stream.buffer]);
}
