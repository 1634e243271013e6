import type { TLSSocket } from "node:tls";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { Exchange } from "../lib/exchange.ts";
import { dataPackets, disconnectOf, isoCarrier, MAX_PACKET_BYTES, packetLength } from "../lib/iso.ts";
import { connectIso, type IsoConnected } from "../lib/iso-connect.ts";
import { layered, openTls, type TlsConnection } from "../lib/layer.ts";
import { parseAnswer } from "./answers.ts";
import { Malformed } from "./cursor.ts";
import { plainFence } from "./fence.ts";
import { frameLength, Joiner } from "./frames.ts";
import { FUNCTION, initSslFrame } from "./requests.ts";
import { isError, returnWords, s7plusError } from "./return-values.ts";

/** TSAP of the collector, as every client of this protocol has it. */
const CALLING_TSAP = Buffer.of(0x06, 0x00);
/** Bytes in the clear before TLS at most. */
const MAX_PLAIN_BYTES = 4096;
const TPKT_BYTES = 4;

const NO_TLS =
  "S7CommPlus is spoken inside TLS only: it needs firmware 2.9 (S7-1500) or 4.3 (S7-1200) or later and, in a project of TIA Portal V17 or later, secure PG/PC and HMI communication; else read the CPU with s7, which needs PUT/GET access and blocks without optimised access";

/**
 * Only TLS 1.3 has the exporter that logging in stands on. CPUs reset the connection at a first message without X25519, or with a
 * post-quantum group, whose first message is several times as long.
 */
const TLS_OPTIONS = {
  minVersion: "TLSv1.3",
  maxVersion: "TLSv1.3",
  ciphers: "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256",
  ecdhCurve: "X25519:P-256:P-384",
  // Certificates of CPUs are self-signed and name other addresses; the settings may pin one.
  rejectUnauthorized: false,
} as const;

/**
 * ISO connection, the request for TLS, and TLS. `fingerprint` "": any certificate. Throws ReasonError: the connection's loss, TIMEOUT, or
 * S7PLUS_ERROR where the CPU has no TLS or its handshake fails; the connection is closed then.
 */
export async function startTls(
  connection: Connection,
  calledTsap: string,
  fingerprint: string,
  ctx: DriverContext,
): Promise<TlsConnection> {
  const { tpduBytes, early } = await connectTo(connection, calledTsap, ctx);
  if (early.length > 0)
    throw new ReasonError("UNKNOWN", `${connection.where} sent ${early.length} bytes before it was asked`, {
      condition: "protocol_violation",
    });
  const rest = await requestTls(connection, tpduBytes, ctx);
  const stream = layered(connection, isoCarrier(tpduBytes - TPKT_BYTES), rest);
  const tls = await openTls(connection, stream, TLS_OPTIONS, ctx).catch((error: unknown) => {
    throw ctx.signal.aborted ? error : handshakeFailure(error);
  });
  checkCertificate(tls.socket, fingerprint);
  return tls;
}

/** A CPU refuses a TSAP, or one connection too many, by ending the connection. */
const REFUSALS: ReadonlySet<string> = new Set(["CONNECTION_CLOSED", "CONNECTION_RESET"]);

function connectTo(connection: Connection, calledTsap: string, ctx: DriverContext): Promise<IsoConnected> {
  const target = { callingTsap: CALLING_TSAP, calledTsap: Buffer.from(calledTsap, "latin1") };
  return connectIso(connection, target, ctx).catch((error: unknown) => {
    if (!(error instanceof ReasonError) || ctx.signal.aborted || !REFUSALS.has(error.reason.type)) throw error;
    const advice = `asked for the TSAP ${calledTsap}: all of its connections of this kind may be taken, try the other destination_tsap; and is it an S7-1200 or S7-1500?`;
    throw new ReasonError(error.reason, `${error.message}; ${advice}`, { cause: error, sessionLost: error.sessionLost });
  });
}

/** What arrived behind the answer, for TLS. */
function requestTls(connection: Connection, tpduBytes: number, ctx: DriverContext): Promise<Buffer> {
  const [carrier, plain] = [isoCarrier(tpduBytes), new PlainAnswer()];
  let settle: ((rest: Buffer) => void) | undefined;
  let refuse: (error: Error) => void = () => {};
  const exchange = new Exchange(connection, ctx.tap, {
    fence: plainFence,
    frameLength: packetLength,
    maxFrameBytes: MAX_PACKET_BYTES,
    maxInFlight: 1,
    onFrame(packet) {
      const disconnect = disconnectOf(packet);
      if (disconnect !== undefined) {
        connection.fail(new ReasonError("CONNECTION_CLOSED", `${connection.where} ended the connection: ${disconnect}`), "close");
        return undefined;
      }
      const payload = carrier.unwrap(packet);
      if (typeof payload === "string") return payload;
      try {
        const answered = plain.take(payload);
        if (answered instanceof ReasonError) refuse(answered);
        else if (answered) settle?.(exchange.release());
        return undefined;
      } catch (error) {
        if (error instanceof Malformed) return error.message;
        throw error;
      }
    },
  });
  return exchange.request<Buffer>(
    ctx,
    () => "the request for TLS",
    (answer, fail) => {
      [settle, refuse] = [answer, fail];
      exchange.send(dataPackets(initSslFrame(1), tpduBytes));
    },
  );
}

/** What the CPU answers in the clear: a stream of bytes, wherever its packets end. */
class PlainAnswer {
  readonly #joiner = new Joiner();
  #held: Buffer = Buffer.alloc(0);

  /** True: TLS follows. False: the answer is not whole. Throws Malformed. */
  take(payload: Uint8Array): boolean | ReasonError {
    const bytes = Buffer.concat([this.#held, payload]);
    if (bytes.length > MAX_PLAIN_BYTES) throw new Malformed(`more than ${MAX_PLAIN_BYTES} bytes in the clear`);
    let at = 0;
    let answered: boolean | ReasonError = false;
    for (let length = frameLength(bytes, at); at < bytes.length; length = frameLength(bytes, at)) {
      if (typeof length === "string") throw new Malformed(length);
      if (length === undefined || at + length > bytes.length) break;
      const arrived = this.#joiner.take(bytes.subarray(at, at + length));
      at += length;
      if (arrived.kind === "message") answered = answerOf(arrived.data) ?? answered;
    }
    this.#held = bytes.subarray(at);
    // The CPU waits for the first message of TLS.
    if (answered === true && this.#held.length > 0)
      throw new Malformed(`${this.#held.length} bytes behind the answer to the request for TLS`);
    return answered;
  }
}

/** Undefined: the message answers nothing. Throws Malformed. */
function answerOf(data: Buffer): true | ReasonError | undefined {
  const answer = parseAnswer(data);
  if (!answer) return undefined;
  const value = answer.cursor.vlq64();
  if (isError(value) || answer.code === FUNCTION.error || answer.code === FUNCTION.error2)
    return s7plusError("UNKNOWN", `the PLC refused TLS: ${returnWords(value)}; ${NO_TLS}`);
  if (answer.code !== FUNCTION.initSsl) throw new Malformed(`function 0x${answer.code.toString(16)} answered the request for TLS`);
  return true;
}

/** A CPU refuses TLS by an alert or by closing the connection. */
function handshakeFailure(error: unknown): unknown {
  if (!(error instanceof ReasonError) || error.reason.type === "TIMEOUT") return error;
  return s7plusError(
    "UNKNOWN",
    `the PLC agreed to TLS and then refused the handshake (TLS 1.3, X25519): ${error.message}; has its project a certificate for PLC communication?`,
    { cause: error },
  );
}

const plainHex = (fingerprint: string): string => fingerprint.replaceAll(":", "").toLowerCase();

/** Throws ReasonError: it is not the one of the settings. */
function checkCertificate(socket: TLSSocket, fingerprint: string): void {
  if (fingerprint === "") return;
  const own: string = socket.getPeerCertificate().fingerprint256 ?? "";
  if (plainHex(own) === plainHex(fingerprint)) return;
  throw s7plusError(
    "UNKNOWN",
    `the PLC shows the certificate with the SHA-256 fingerprint ${own || "(none)"}, which is not the one of the setting certificate; set it to this one if the PLC has been given a new certificate`,
  );
}
