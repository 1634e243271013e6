import { BinaryReader } from "./binary.ts";

/**
 * Messages of OPC UA without security, as far as a replay opens sessions (OPC 10000-6, 5.2, 6.7.2 and 7.1; OPC 10000-4, 5.5 to 5.7). Ids are those of
 * the binary encodings (OPC 10000-6, A.3). A channel has numbers that the requests bring: nothing is remembered. All pure.
 */

export const SERVICE = {
  fault: 397,
  findServers: 422,
  endpoints: 428,
  openChannel: 446,
  createSession: 461,
  activateSession: 467,
  closeSession: 473,
  browse: 527,
  browseNext: 533,
  translate: 554,
  registerNodes: 560,
  read: 631,
} as const;
export const STATUS = {
  policyRejected: 0x8055_0000,
  nodeIdUnknown: 0x8034_0000,
  serviceUnsupported: 0x800b_0000,
  responseTooLarge: 0x80b9_0000,
} as const;

const NONE = "http://opcfoundation.org/UA/SecurityPolicy#None";
const TRANSPORT = "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary";
/** Header of a message; with channel, token, sequence number and request id. */
export const [HEADER_BYTES, MESSAGE_BYTES] = [8, 24];
/** One chunk of an answer: what clients take at least that say nothing else. */
const MAX_CHUNK_BYTES = 65_535;
const CHANNEL = 1;
const ANY_NONCE = Buffer.alloc(32);

export const u32 = (...numbers: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [i, number] of numbers.entries()) bytes.writeUInt32LE(number >>> 0, i * 4);
  return bytes;
};
const bytes = (content: Buffer | string | undefined): Buffer =>
  content === undefined ? u32(-1) : Buffer.concat([u32(Buffer.byteLength(content)), Buffer.from(content)]);
const NULL = u32(-1);
const nodeId = (id: number): Buffer => Buffer.of(1, 0, id & 0xff, id >> 8);
const EMPTY_STRUCTURE = Buffer.of(0, 0, 0);

/** Places in a request: its authentication token, time stamp and handle; the parameters begin behind its header. */
export interface RequestHead {
  readonly service: number;
  readonly tokenFrom: number;
  readonly timeAt: number;
  readonly parameters: BinaryReader;
}

/** The number of a binary encoding in namespace 0; 0: another one. */
function serviceOf(reader: BinaryReader): number {
  return Number(/^i=(\d+)$/.exec(reader.nodeId())?.[1] ?? 0);
}

/** `body` begins with the id of the service. Throws RangeError where it ends too early. */
export function requestIn(body: Buffer): RequestHead {
  const parameters = new BinaryReader(body);
  const service = serviceOf(parameters);
  const tokenFrom = parameters.position;
  parameters.nodeId();
  const timeAt = parameters.position;
  parameters.int64();
  parameters.uint32();
  parameters.uint32();
  parameters.string();
  parameters.uint32();
  parameters.extensionObject();
  return { service, tokenFrom, timeAt, parameters };
}

/** Service and result of an answer; its parameters are left in the reader. Throws RangeError where it ends too early. */
export function answerIn(body: Buffer): {
  readonly service: number;
  readonly timeAt: number;
  readonly result: number;
  readonly parameters: BinaryReader;
} {
  const parameters = new BinaryReader(body);
  const service = serviceOf(parameters);
  const timeAt = parameters.position;
  parameters.int64();
  parameters.uint32();
  const result = parameters.uint32();
  parameters.diagnosticInfo();
  parameters.array(() => parameters.string());
  parameters.extensionObject();
  return { service, timeAt, result, parameters };
}

/** Id, time and handle of the request, and this result. */
function answerBody(request: Buffer, { timeAt }: RequestHead, service: number, result: number, parameters: readonly Buffer[]): Buffer {
  return Buffer.concat([
    nodeId(service),
    request.subarray(timeAt, timeAt + 12),
    u32(result),
    Buffer.of(0),
    NULL,
    EMPTY_STRUCTURE,
    ...parameters,
  ]);
}

/** An answer in one chunk to a request in one; its sequence number is the request's, since a client has an answer for each. */
export function message(request: Buffer, head: RequestHead, parameters: readonly Buffer[]): Buffer {
  const body = answerBody(request.subarray(MESSAGE_BYTES), head, head.service + 3, 0, parameters);
  return body.length + MESSAGE_BYTES > MAX_CHUNK_BYTES
    ? fault(request, head, STATUS.responseTooLarge)
    : chunk("MSG", request.subarray(HEADER_BYTES, MESSAGE_BYTES), body);
}

export function fault(request: Buffer, head: RequestHead, status: number): Buffer {
  return chunk(
    "MSG",
    request.subarray(HEADER_BYTES, MESSAGE_BYTES),
    answerBody(request.subarray(MESSAGE_BYTES), head, SERVICE.fault, status, []),
  );
}

function chunk(type: string, head: Buffer, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${type}F`), u32(HEADER_BYTES + head.length + body.length), head, body]);
}

/** ACK, which grants what the HEL asks for. */
export const acknowledged = (hello: Buffer): Buffer => chunk("ACK", hello.subarray(HEADER_BYTES, HEADER_BYTES + 20), Buffer.alloc(0));

/** Sequence number and request id in an OPN message, behind its security header. Throws RangeError. */
export function openingAt(opening: Buffer): { readonly policy: string; readonly at: number } {
  const reader = new BinaryReader(opening.subarray(HEADER_BYTES + 4));
  const policy = reader.string() ?? "";
  reader.byteString();
  reader.byteString();
  return { policy, at: HEADER_BYTES + 4 + reader.position };
}

/** The channel that a client asks for; undefined: it wants security. The token is another one at each renewal. Throws RangeError. */
export function opened(opening: Buffer): Buffer | undefined {
  const { policy, at } = openingAt(opening);
  if (policy !== NONE) return undefined;
  const body = opening.subarray(at + 8);
  const head = requestIn(body);
  const { parameters } = head;
  parameters.uint32();
  parameters.uint32();
  parameters.uint32();
  parameters.byteString();
  const lifetimeMs = parameters.uint32();
  const token = [u32(CHANNEL, opening.readUInt32LE(at)), body.subarray(head.timeAt, head.timeAt + 8), u32(lifetimeMs)];
  const security = [bytes(NONE), NULL, NULL, opening.subarray(at, at + 8)];
  return chunk(
    "OPN",
    Buffer.concat([u32(CHANNEL), ...security]),
    answerBody(body, head, SERVICE.openChannel + 3, 0, [u32(0), ...token, NULL]),
  );
}

export const rejected = (): Buffer => chunk("ERR", u32(STATUS.policyRejected), bytes("a recording has no security"));

/** One endpoint without security, for anybody. */
function endpoints(url: string): readonly Buffer[] {
  const server = [
    bytes("urn:collector:replay"),
    bytes("urn:collector:replay"),
    Buffer.of(2),
    bytes("replay"),
    u32(0),
    NULL,
    NULL,
    u32(1),
    bytes(url),
  ];
  const token = [bytes("anonymous"), u32(0), NULL, NULL, NULL];
  return [u32(1), bytes(url), ...server, NULL, u32(1), bytes(NONE), u32(1), ...token, bytes(TRANSPORT), Buffer.of(0)];
}

/** Parameters of answers that open and end sessions; undefined: another service. Throws RangeError where the request ends too early. */
export function sessionAnswer({ service, parameters }: RequestHead): readonly Buffer[] | undefined {
  switch (service) {
    case SERVICE.endpoints:
      return endpoints(parameters.string() ?? "");
    case SERVICE.createSession: {
      // The description of the client.
      for (const _ of ["uri", "product"]) parameters.string();
      parameters.localizedText();
      parameters.uint32();
      for (const _ of ["gateway", "profile"]) parameters.string();
      parameters.array(() => parameters.string());
      parameters.string();
      const url = parameters.string() ?? "";
      for (const _ of ["name", "nonce", "certificate"]) parameters.byteString();
      const timeout = parameters.int64();
      const revised = Buffer.alloc(8);
      revised.writeBigInt64LE(timeout);
      return [nodeId(1), nodeId(2), revised, bytes(ANY_NONCE), NULL, ...endpoints(url), NULL, NULL, NULL, u32(0)];
    }
    case SERVICE.activateSession:
      return [bytes(ANY_NONCE), NULL, NULL];
    case SERVICE.closeSession:
      return [];
    default:
      return undefined;
  }
}
