import type net from "node:net";
import { FramedConnection } from "../../simulators/kit/framed-connection.ts";
import type { Way } from "./simulator-behaviour.ts";
import { cutMessage, headerErrorOf, nodesBody, TCP_COMMANDS, TCP_ERRORS, tcpMessage, tcpMessageIn } from "./simulator-frames.ts";
import type { FinsPlc } from "./simulator-plc.ts";

/** How a refused handshake looks: a node answer with nodes, or without, or an error notification; or there is none. */
export type RefusalForm = "nodes" | "bare" | "notification" | "silent";

/** What an Ethernet unit agrees to when a connection opens. All of it may be set while it runs, for the next connections. */
export class TcpRules {
  maxConnections = 16;
  /** Nodes that it gives to those who ask for none. */
  automatic: readonly number[] = Array.from({ length: 16 }, (_, i) => 239 + i);
  /** Nodes that connections have which are gone, and the unit does not know it yet. */
  readonly taken = new Set<number>();
  /** Addresses that its protection lets connect; undefined: any. */
  allowed: ((address: string) => boolean) | undefined;
  maxNode = 254;
  /** Every handshake is refused with this code. */
  handshakeError: number | undefined;
  refusalForm: RefusalForm = "nodes";
  /** Says that it is still there before each answer, as it does to a holder of a node that another one asks for. */
  confirms = false;
  /** Its messages leave in pieces of so many bytes. */
  pieceBytes = Number.POSITIVE_INFINITY;
}

/** One connection at the unit's end: handshake, then frames. */
export class PlcConnection extends FramedConnection implements Way {
  readonly transport = "tcp";
  readonly client: string;
  /** Undefined until its handshake. */
  node: number | undefined;

  readonly #plc: FinsPlc;

  constructor(plc: FinsPlc, socket: net.Socket) {
    super(socket, cutMessage);
    this.#plc = plc;
    this.client = `${socket.remoteAddress}:${socket.remotePort}/tcp`;
  }

  send(frame: Buffer): void {
    if (this.#plc.tcp.confirms) this.#send(tcpMessage(TCP_COMMANDS.confirm, 0));
    this.#send(tcpMessage(TCP_COMMANDS.frame, 0, frame));
  }

  sendAsStranger(): void {}

  /** Tells of an error and ends. */
  notify(code: number): void {
    this.#send(tcpMessage(TCP_COMMANDS.error, code));
    this.hangUp("fin");
  }

  #send(message: Buffer): void {
    const { pieceBytes } = this.#plc.tcp;
    for (let at = 0; at < message.length; at += pieceBytes) this.write(message.subarray(at, at + pieceBytes));
  }

  protected override onGarbage(bytes: Buffer): void {
    this.#violate(`bytes that are not FINS/TCP: ${bytes.toString("hex", 0, 16)}`, headerErrorOf(bytes) ?? TCP_ERRORS.notFins);
  }

  protected override onFrame(bytes: Buffer): void {
    const { command, body } = tcpMessageIn(bytes);
    if (command === TCP_COMMANDS.askNode && this.node === undefined && body.length === 4) this.#onHandshake(body.readUInt32BE(0));
    else if (command === TCP_COMMANDS.askNode) this.#violate("a handshake too many, or with other than one node", TCP_ERRORS.unsupported);
    else if (command === TCP_COMMANDS.frame && this.node !== undefined) this.#plc.handle(Buffer.from(body), this);
    else if (command === TCP_COMMANDS.frame) this.#violate("a frame before the handshake", TCP_ERRORS.unsupported);
    else this.#violate(`the message ${command} of FINS/TCP`, TCP_ERRORS.unsupported);
  }

  #violate(words: string, code: number): void {
    this.#plc.noteViolation(words);
    this.notify(code);
  }

  #onHandshake(asked: number): void {
    this.#plc.counts.handshakes++;
    const given = this.#given(asked);
    if ("node" in given) {
      this.node = given.node;
      this.#send(tcpMessage(TCP_COMMANDS.giveNode, 0, nodesBody(given.node, this.#plc.node)));
    } else this.#refuse(given.error, asked);
  }

  /** The node, or the error code that refuses it. */
  #given(asked: number): { readonly node: number } | { readonly error: number } {
    const { handshakeError, maxConnections, allowed, automatic, maxNode, taken } = this.#plc.tcp;
    if (handshakeError !== undefined) return { error: handshakeError };
    if (allowed && !allowed(this.socket.remoteAddress ?? "")) return { error: TCP_ERRORS.addressRefused };
    const connected = this.#plc.nodes();
    if (connected.size >= maxConnections) return { error: TCP_ERRORS.allTaken };
    const isFree = (node: number) => !connected.has(node) && !taken.has(node);
    if (asked === 0) {
      const free = automatic.find((node) => isFree(node) && node !== this.#plc.node);
      return free === undefined ? { error: TCP_ERRORS.noFreeNode } : { node: free };
    }
    if (asked > maxNode) return { error: TCP_ERRORS.nodeOutOfRange };
    if (asked === this.#plc.node) return { error: TCP_ERRORS.sameNode };
    return isFree(asked) ? { node: asked } : { error: TCP_ERRORS.nodeConnected };
  }

  #refuse(error: number, asked: number): void {
    this.#plc.counts.refused++;
    const { refusalForm } = this.#plc.tcp;
    if (refusalForm === "silent") {
      this.isDeaf = true;
      return;
    }
    if (refusalForm === "notification") this.#send(tcpMessage(TCP_COMMANDS.error, error));
    else this.#send(tcpMessage(TCP_COMMANDS.giveNode, error, refusalForm === "nodes" ? nodesBody(asked, this.#plc.node) : undefined));
    this.hangUp("fin");
  }
}
