import { LIMITS } from "./limits.ts";

/** Why a connection is closed: what its ERR message says (OPC 10000-6, 7.1.2.5). */
export interface Refusal {
  /** StatusCode. */
  readonly status: number;
  /** For the client and the log: what is refused, and what would be right. */
  readonly words: string;
  /** It is not OPC UA at all: whoever looks for open ports sends such. */
  readonly isForeign: boolean;
}

export interface FenceOptions {
  /** `security_modes` has None: a channel without security may do more than discover. */
  readonly offersNone: boolean;
  /** A session was activated on this channel, and there is one still. */
  isActivated(): boolean;
}

/**
 * Looks at what one client sends before the library decodes it. Messages come in order: one HEL, an OPN, then MSG, OPN (to renew) and CLO.
 * Before a session is activated a message has at most LIMITS.messageBeforeSession bytes with all its chunks, in every mode, then
 * LIMITS.request. On a channel without security that the sink does not offer, only GetEndpoints and FindServers pass.
 */
export interface Fence {
  /** Of the first HEADER_BYTES of a chunk, so that the rest of a wrong one is not waited for. */
  judgeHeader(header: Buffer): Refusal | undefined;
  /** Of a whole chunk whose header passed. */
  judge(chunk: Buffer): Refusal | undefined;
}

/** Message type, kind of chunk, length (OPC 10000-6, 7.1.2.2). */
export const HEADER_BYTES = 8;
/** Secure channel and token, sequence number and request id (OPC 10000-6, 6.7.2). */
const BODY_AT = 24;
const LEAST: Readonly<Record<string, number>> = { HEL: 32, OPN: 32, MSG: BODY_AT, CLO: BODY_AT };
/** Encodings of requests in namespace 0 (OPC 10000-6, A.3). */
const FIND_SERVERS = 422;
const GET_ENDPOINTS = 428;
const OPEN_SECURE_CHANNEL = 446;
const CLOSE_SECURE_CHANNEL = 452;
const DISCOVERY: readonly (number | undefined)[] = [FIND_SERVERS, GET_ENDPOINTS];
const NONE = "http://opcfoundation.org/UA/SecurityPolicy#None";
/** Longest policy URI that there is, with a margin. */
const MAX_POLICY_BYTES = 255;

/** StatusCodes (OPC 10000-6, A.2). */
const STATUS = {
  BadDecodingError: 0x8007_0000,
  BadSecurityChecksFailed: 0x8013_0000,
  BadSecurityPolicyRejected: 0x8055_0000,
  BadTcpMessageTypeInvalid: 0x807e_0000,
  BadTcpMessageTooLarge: 0x8080_0000,
} as const;

const refused = (status: keyof typeof STATUS, words: string): Refusal => ({ status: STATUS[status], words, isForeign: false });
const foreign = (words: string): Refusal => ({ ...refused("BadTcpMessageTypeInvalid", words), isForeign: true });

/** What the library could not decode. */
export const UNDECODABLE: Refusal = refused("BadDecodingError", "the request cannot be decoded");

export function createFence({ offersNone, isActivated }: FenceOptions): Fence {
  let hasHello = false;
  /** Of the channel; set by its first OPN. */
  let policy: string | undefined;
  /** Of the message that is under way. */
  let messageBytes = 0;
  let isFirstChunk = true;

  const judgeOpen = (chunk: Buffer): Refusal | undefined => {
    const opened = readOpen(chunk);
    if (!opened) return refused("BadDecodingError", "the OpenSecureChannel message cannot be decoded");
    if (policy !== undefined && opened.policy !== policy)
      return refused("BadSecurityChecksFailed", "a secure channel keeps the security policy that it was opened with");
    policy = opened.policy;
    return policy === NONE && requestOf(chunk, opened.bodyAt) !== OPEN_SECURE_CHANNEL
      ? refused("BadDecodingError", "an OPN message holds an OpenSecureChannel request")
      : undefined;
  };

  const judgeMessage = (chunk: Buffer, kind: string): Refusal | undefined => {
    // The library keeps the chunks of a message that is aborted, and so does this count.
    messageBytes += chunk.length;
    const isFirst = isFirstChunk && kind !== "A";
    if (isFirst) isFirstChunk = false;
    const bytes = messageBytes;
    if (kind === "F") [messageBytes, isFirstChunk] = [0, true];
    if (bytes > LIMITS.request) return refused("BadTcpMessageTooLarge", `a request has at most ${LIMITS.request} bytes`);
    if (bytes > LIMITS.messageBeforeSession && !isActivated())
      return refused("BadTcpMessageTooLarge", `before a session is activated a request has at most ${LIMITS.messageBeforeSession} bytes`);
    if (!isFirst || policy !== NONE || offersNone || DISCOVERY.includes(requestOf(chunk, BODY_AT))) return undefined;
    return refused("BadSecurityPolicyRejected", "this channel has no security: only GetEndpoints and FindServers are answered on it");
  };

  return {
    judgeHeader(header) {
      const [type, kind, length] = [header.toString("latin1", 0, 3), String.fromCharCode(header[3] ?? 0), header.readUInt32LE(4)];
      const least = LEAST[type];
      if (least === undefined) return foreign("a client does not send this message type; it sends HEL, OPN, MSG or CLO");
      if (kind !== "F" && (type !== "MSG" || (kind !== "C" && kind !== "A")))
        return foreign("the kind of chunk is not F, nor C or A of a MSG");
      if (length > LIMITS.chunk) return refused("BadTcpMessageTooLarge", `a chunk has at most ${LIMITS.chunk} bytes`);
      if (length < least) return foreign(`a chunk of type ${type} has at least ${least} bytes`);
      if ((type === "HEL") === hasHello) return foreign("a client says HEL first, and once");
      return type !== "HEL" && type !== "OPN" && policy === undefined
        ? foreign("a client opens a secure channel before it asks")
        : undefined;
    },
    judge(chunk) {
      switch (chunk.toString("latin1", 0, 3)) {
        case "HEL":
          hasHello = true;
          return undefined;
        case "OPN":
          return judgeOpen(chunk);
        case "CLO":
          return policy !== NONE || chunk.length === BODY_AT || requestOf(chunk, BODY_AT) === CLOSE_SECURE_CHANNEL
            ? undefined
            : refused("BadDecodingError", "a CLO message holds a CloseSecureChannel request");
        default:
          return judgeMessage(chunk, String.fromCharCode(chunk[3] ?? 0));
      }
    },
  };
}

/** The asymmetric security header (OPC 10000-6, 6.7.2.3): channel, policy, certificate, thumbprint; then the sequence header. */
function readOpen(chunk: Buffer): { readonly policy: string; readonly bodyAt: number } | undefined {
  let at = 12;
  const ends: number[] = [];
  for (let i = 0; i < 3; i++) {
    if (at + 4 > chunk.length) return undefined;
    at += 4 + Math.max(0, chunk.readInt32LE(at));
    ends.push(at);
  }
  const [policyEnd = 0] = ends;
  if (at + HEADER_BYTES > chunk.length || policyEnd - 16 > MAX_POLICY_BYTES) return undefined;
  return { policy: chunk.toString("utf8", 16, policyEnd), bodyAt: at + HEADER_BYTES };
}

/** Identifier of a request's encoding, in the forms that a number in namespace 0 has (OPC 10000-6, 5.2.2.9); undefined: it is another. */
function requestOf(chunk: Buffer, at: number): number | undefined {
  if (chunk[at] === 1 && chunk[at + 1] === 0 && at + 4 <= chunk.length) return chunk.readUInt16LE(at + 2);
  if (chunk[at] === 2 && at + 7 <= chunk.length && chunk.readUInt16LE(at + 1) === 0) return chunk.readUInt32LE(at + 3);
  return undefined;
}

/** The ERR message with which the connection ends (OPC 10000-6, 7.1.2.5). Pure. */
export function errorMessage({ status, words }: Refusal): Buffer {
  const reason = Buffer.from(words);
  const head = Buffer.alloc(16);
  head.write("ERRF", "latin1");
  head.writeUInt32LE(head.length + reason.length, 4);
  head.writeUInt32LE(status, 8);
  head.writeUInt32LE(reason.length, 12);
  return Buffer.concat([head, reason]);
}
