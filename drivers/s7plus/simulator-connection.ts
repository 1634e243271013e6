import type { EventEmitter } from "node:events";
import type net from "node:net";
import { TLSSocket } from "node:tls";
import { type ConnectRequest, confirmOf, dataPacket, disconnectOf, packetCut, parsePacket } from "../../simulators/kit/cotp.ts";
import { FramedConnection } from "../../simulators/kit/framed-connection.ts";
import { CotpStream } from "./simulator-cotp.ts";
import { helloFault } from "./simulator-hello.ts";
import {
  ERROR2,
  type EventKind,
  FUNCTIONS,
  frame,
  MessageStream,
  parseRequest,
  responseHead,
  returnValueOf,
  systemEvent,
} from "./simulator-messages.ts";
import type { S7PlusPlc } from "./simulator-plc.ts";
import { PlcSession } from "./simulator-session.ts";
import { WireError } from "./simulator-wire.ts";

const LARGEST_REQUEST = 65_536;
/** The smallest and the largest TPKT packet. */
const PACKET_BYTES = [7, 65_535] as const;
const [TSAP_UNKNOWN, OWN_REFERENCE] = [3, 1];
/** TPKT's header and that of a data packet. */
const HEADERS_BYTES = 7;
const SMALLEST_SIZE_CODE = 7;
const EMPTY = Buffer.alloc(0);

/** Until one of these events comes. */
function untilAny(emitter: EventEmitter, names: readonly string[]): Promise<void> {
  return new Promise((done) => {
    const end = () => {
      for (const name of names) emitter.off(name, end);
      done();
    };
    for (const name of names) emitter.on(name, end);
  });
}

/** One connection at the CPU's end: COTP, the request for TLS, TLS, and the session in it. */
export class PlcConnection extends FramedConnection {
  /** Undefined until TLS is agreed. */
  session: PlcSession | undefined;

  readonly #plc: S7PlusPlc;
  readonly #plain = new MessageStream(LARGEST_REQUEST);
  #isConfirmed = false;
  #payloadBytes = 1017;
  /** TLS's first record, until it is whole. */
  #hello: Buffer<ArrayBufferLike> | undefined;
  #stream: CotpStream | undefined;
  #tls: TLSSocket | undefined;
  /** What is sent piece by piece goes in turns. */
  #sending: Promise<void> | undefined;

  constructor(plc: S7PlusPlc, socket: net.Socket) {
    super(socket, packetCut(...PACKET_BYTES));
    this.#plc = plc;
  }

  override hangUp(how: "fin" | "rst"): void {
    this.session?.forget();
    super.hangUp(how);
  }

  /** Reports the end of the session, and closes. */
  endSession(): void {
    this.report("logout");
    this.hangUp("fin");
  }

  report(kind: EventKind): void {
    if (!this.isDeaf) this.#tls?.write(systemEvent(kind));
  }

  babble(bytes: Buffer): void {
    if (this.isDeaf) return;
    if (this.#tls) this.#tls.write(bytes);
    else this.write(bytes);
  }

  /** Both ends get the same bytes. */
  exporter(label: string, bytes: number): Buffer {
    return this.#tls?.exportKeyingMaterial(bytes, label, EMPTY) ?? EMPTY;
  }

  /** Sends a message, in fragments where it is long. */
  send(version: number, data: Buffer): void {
    const write = () => {
      const { fragmentBytes, joinsFragments } = this.#plc;
      const frames: Buffer[] = [];
      for (let at = 0; at < data.length; at += fragmentBytes)
        frames.push(frame(version, data.subarray(at, at + fragmentBytes), at + fragmentBytes >= data.length));
      if (joinsFragments) this.#write(Buffer.concat(frames));
      else for (const one of frames) this.#write(one);
    };
    if (this.#sending) this.#sending = this.#sending.then(write);
    else write();
  }

  /** Sends a message that is made while it is sent: no more of it is held than one piece and what the socket has not taken. */
  sendPieces(version: number, pieces: Iterable<Buffer>): void {
    const sending = (this.#sending ?? Promise.resolve()).then(() => this.#sendAll(version, pieces));
    this.#sending = sending;
    void sending.finally(() => {
      if (this.#sending === sending) this.#sending = undefined;
    });
  }

  async #sendAll(version: number, pieces: Iterable<Buffer>): Promise<void> {
    let held: Buffer = EMPTY;
    let untilPause = this.#plc.explorePause?.bytes ?? Number.POSITIVE_INFINITY;
    for (const piece of pieces) {
      held = held.length > 0 ? Buffer.concat([held, piece]) : piece;
      const { fragmentBytes, explorePause } = this.#plc;
      // The last fragment is another frame: one is always held back.
      let at = 0;
      for (; held.length - at > fragmentBytes; at += fragmentBytes) {
        if (this.isDeaf) return;
        if (!this.#write(frame(version, held.subarray(at, at + fragmentBytes), false)) && this.#tls)
          await untilAny(this.#tls, ["drain", "close"]);
        untilPause -= fragmentBytes;
        if (!explorePause || untilPause > 0) continue;
        untilPause = explorePause.bytes;
        await new Promise<void>((done) => this.after(explorePause.ms, done));
      }
      held = held.subarray(at);
    }
    if (!this.isDeaf) this.#write(frame(version, held, true));
  }

  #write(bytes: Buffer): boolean {
    this.#plc.sentBytes += bytes.length;
    return this.isDeaf || (this.#tls?.write(bytes) ?? true);
  }

  protected override onClose(): void {
    if (this.session?.isOpen) this.#plc.orphan();
    this.session?.forget();
    this.#tls?.destroy();
    this.#stream?.destroy();
  }

  protected override onGarbage(): void {
    this.#violate("bytes that are not TPKT");
  }

  protected override onFrame(bytes: Buffer): void {
    const packet = parsePacket(bytes);
    if (packet?.kind === "connect" && !this.#isConfirmed) this.#onConnect(packet);
    else if (packet?.kind === "data" && this.#isConfirmed) this.#onPayload(packet.payload, packet.packetBytes);
    else this.#violate(`the packet ${bytes.toString("hex", 0, 8)} at this moment`);
  }

  #violate(words: string): void {
    this.#plc.noteViolation(words);
    this.hangUp("rst");
  }

  #onConnect(request: ConnectRequest): void {
    const { tsaps, wrongTsap, confirm, packetSizeCode } = this.#plc;
    if (!tsaps.has(request.called.toString("latin1"))) {
      this.#plc.counts.refused++;
      if (wrongTsap === "disconnect") this.write(disconnectOf(request.reference, TSAP_UNKNOWN, OWN_REFERENCE));
      if (wrongTsap === "silent") this.isDeaf = true;
      else this.hangUp(wrongTsap === "rst" ? "rst" : "fin");
      return;
    }
    const code = Math.max(SMALLEST_SIZE_CODE, Math.min(request.sizeCode ?? packetSizeCode, packetSizeCode));
    this.#isConfirmed = true;
    this.#payloadBytes = 2 ** code - HEADERS_BYTES;
    this.write(confirmOf(request, code, confirm));
  }

  #onPayload(payload: Buffer, packetBytes: number): void {
    const most = this.#payloadBytes + HEADERS_BYTES;
    if (packetBytes > most) this.#plc.noteViolation(`a COTP packet of ${packetBytes} bytes where ${most} are agreed`);
    if (this.#stream) this.#stream.feed(Buffer.from(payload));
    else if (this.#hello) this.#onHello(payload);
    else this.#onPlain(payload);
  }

  #onPlain(payload: Buffer): void {
    try {
      for (const message of this.#plain.push(payload)) {
        const { name, sequence, functionId } = parseRequest(message.data);
        if (name === "initSsl") this.#onInitSsl(sequence);
        else {
          // Nothing is done in plain text.
          this.#plc.noteViolation(`function ${functionId.toString(16)} before TLS`);
          this.#sendPlain(responseHead(functionId, sequence, returnValueOf(-107)).u8(0).u32(0).done());
        }
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#violate(error.message);
    }
  }

  #onInitSsl(sequence: number): void {
    const { ssl, eventBeforeSsl } = this.#plc;
    if (ssl === "silent") return;
    if (eventBeforeSsl) this.#sendPackets(systemEvent("plain"));
    if (ssl === "unknown-service") this.#sendPlain(responseHead(ERROR2, sequence, returnValueOf(-119)).u32(0).done());
    else if (ssl === "no-tls") this.#sendPlain(responseHead(FUNCTIONS.initSsl, sequence, returnValueOf(-507), 0x70).u8(0).u32(0).done());
    else {
      this.#sendPlain(responseHead(FUNCTIONS.initSsl, sequence, 0n, 0x70).u8(0).u32(0).done());
      this.#hello = EMPTY;
    }
  }

  #sendPlain(data: Buffer): void {
    this.#sendPackets(frame(1, data, true));
  }

  #sendPackets(bytes: Buffer): boolean {
    const { payloadBytes, sendsEmptyPackets, leavesMessagesOpen } = this.#plc;
    const most = Math.min(this.#payloadBytes, payloadBytes);
    const packets: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += most) {
      if (sendsEmptyPackets) packets.push(dataPacket(EMPTY));
      packets.push(dataPacket(bytes.subarray(at, at + most), !leavesMessagesOpen));
    }
    return this.write(packets.length === 1 ? (packets[0] ?? EMPTY) : Buffer.concat(packets));
  }

  /** Looks at TLS's first record before TLS does: CPUs reset what they do not know. */
  #onHello(payload: Buffer): void {
    this.#hello = Buffer.concat([this.#hello ?? EMPTY, payload]);
    if (this.#hello.length < 5 || this.#hello.length < 5 + this.#hello.readUInt16BE(3)) return;
    const fault = helloFault(this.#hello);
    if (fault !== undefined) this.#violate(fault);
    else if (this.#plc.ssl === "reset") this.hangUp("rst");
    else this.#beginTls(this.#hello);
  }

  #beginTls(hello: Buffer): void {
    const { counts } = this.#plc;
    const drained = () => untilAny(this.socket, ["drain", "close"]);
    const stream = new CotpStream(
      (bytes) => this.#sendPackets(bytes),
      drained,
      () => this.socket.end(),
    );
    this.#stream = stream;
    const tls = new TLSSocket(stream, { isServer: true, secureContext: this.#plc.context() });
    this.#tls = tls;
    const session = new PlcSession(this.#plc, this);
    const messages = new MessageStream(LARGEST_REQUEST);
    tls.on("error", () => this.hangUp("fin"));
    tls.on("end", () => this.socket.end());
    tls.once("secure", () => {
      counts.handshakes++;
      this.session = session;
    });
    tls.on("data", (chunk: Buffer) => {
      this.#plc.onHeard?.(chunk);
      try {
        for (const message of messages.push(chunk)) if (!this.isDeaf) session.take(message);
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
        this.fail(error.message);
      }
    });
    stream.feed(hello);
  }

  /** What the client sent cannot be understood: reports it and closes. */
  fail(words: string, code = -120): void {
    this.#plc.noteViolation(words);
    if (this.isDeaf) return;
    this.#tls?.write(systemEvent("fatal", returnValueOf(code)));
    this.hangUp("fin");
  }
}
