import dgram from "node:dgram";
import { DeviceServer } from "../../simulators/kit/device-server.ts";
import type { FinsNetwork, FinsRequest, Misbehaviour, RelayError, Transport, UdpAnswers, Way } from "./simulator-behaviour.ts";
import { execute, type FinsController, type FinsIdentity, type FinsLimits, type FinsStatus, LIMITS } from "./simulator-commands.ts";
import { END_CODES, type FinsAnswer, type FinsCommand, parseCommand, RELAY_ERROR, responseTo } from "./simulator-frames.ts";
import { FinsMemory, type ItemRequest } from "./simulator-memory.ts";
import { PlcConnection, TcpRules } from "./simulator-tcp.ts";

export interface FinsPlcOptions {
  /** 0 or absent takes one that is free for both transports. */
  readonly port?: number;
  /** 127.0.0.1 unless told otherwise. */
  readonly host?: string;
  readonly memory?: FinsMemory;
  /** Default: both. */
  readonly transports?: Readonly<Record<Transport, boolean>>;
  /** Before each command; ms since the start. Values that change by themselves are put here. */
  readonly update?: (memory: FinsMemory, ms: number) => void;
}

const [KEPT_REQUESTS, KEPT_VIOLATIONS, KEPT_FRAMES] = [1000, 50, 64];
const BACKWARDS_AFTER_MS = 5;
const PORT_TRIES = 20;
const [CPU, BROADCAST] = [0, 0xff];
const NO_DATA: Buffer = Buffer.alloc(0);
const NO_COUNTS = { accepted: 0, refused: 0, handshakes: 0, frames: 0, repeats: 0, requests: 0, items: 0, payloadBytes: 0, errors: 0 };

export const limitsFor = (memory: FinsMemory): FinsLimits => ({ ...(memory.family === "c" ? LIMITS.cSeries : LIMITS.ethernet) });

/** A controller behind a node of another network. */
export function controllerWith(memory: FinsMemory, limits: FinsLimits = limitsFor(memory)): FinsController {
  return {
    memory,
    limits,
    identity: { model: "CJ2M-CPU33", version: "02.01" },
    status: { run: 1, mode: 4, fatal: 0, nonFatal: 0 },
    now: () => new Date(),
    unknownCommands: new Set(),
  };
}

/** A controller that speaks FINS over UDP and TCP on one port. Every public field is its state and may be set while it runs. */
export class FinsPlc implements FinsController {
  readonly memory: FinsMemory;
  readonly limits: FinsLimits;
  readonly identity: FinsIdentity = { model: "CP1L-EL20", version: "01.06" };
  readonly status: FinsStatus = { run: 1, mode: 4, fatal: 0, nonFatal: 0 };
  now: (() => Date) | undefined = () => new Date();
  readonly unknownCommands = new Set<number>();

  /** Its own node, and the number of its network in routing tables; 0: it has none. */
  node = 10;
  network = 0;
  /** Other networks by number. */
  readonly networks = new Map<number, FinsNetwork>();
  /** To a node of its own network that is not there; absent: no answer. */
  wrongNode: number | undefined;
  /** What is agreed when a connection opens. */
  readonly tcp = new TcpRules();
  udpAnswers: UdpAnswers = "source";
  /** An address of this machine from which answers over UDP leave, by another port. Absent: from where they were asked. */
  udpFrom: string | undefined;

  /** Every command that reads memory is refused with this end code. */
  readError: number | undefined;
  /** Every command is answered with it. */
  relay: RelayError | undefined;
  /** Bits 7 (fatal) and 6 (non-fatal) of the sub code of every answer: 0x80, 0x40. */
  statusBits = 0;
  answerDelayMs = 0;
  /** What comes within 5 ms is answered backwards. */
  answersBackwards = false;
  /** Commands that may wait for their answers; above it `overQueue`, absent: no answer. */
  queue = Number.POSITIVE_INFINITY;
  overQueue: number | undefined = END_CODES.busy;
  /** Asked for every command. */
  misbehave: ((request: FinsRequest) => Misbehaviour | undefined) | undefined;

  readonly counts = { ...NO_COUNTS };
  /** The last commands, the oldest first, those that came again among them. */
  readonly lastRequests: FinsRequest[] = [];
  /** What a client did that no right one does, in words: commands that do not read, frames that are none. */
  readonly violations: string[] = [];
  /** Most commands that waited for their answers at once. */
  mostInFlight = 0;

  readonly #server: DeviceServer<PlcConnection>;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #began = performance.now();
  readonly #update: FinsPlcOptions["update"];
  readonly #host: string;
  /** Frames that came last, to know what comes again. */
  readonly #frames: string[] = [];
  #held: (() => void)[] = [];
  #inFlight = 0;
  #port = 0;
  #udp: dgram.Socket | undefined;
  #stranger: dgram.Socket | undefined;
  #elsewhere: Promise<dgram.Socket> | undefined;

  constructor({ memory = new FinsMemory(), update, host = "127.0.0.1" }: FinsPlcOptions) {
    this.memory = memory;
    this.limits = limitsFor(memory);
    this.#update = update;
    this.#host = host;
    this.#server = new DeviceServer((socket) => {
      this.counts.accepted++;
      return new PlcConnection(this, socket);
    });
  }

  get port(): number {
    return this.#port;
  }

  /** On one port for both. Throws what listening fails with. */
  async listen(port: number, transports: Readonly<Record<Transport, boolean>>): Promise<void> {
    for (let tries = 1; ; tries++) {
      this.#port = port;
      try {
        await this.serve(transports);
        return;
      } catch (error) {
        // A free TCP port may be taken as a UDP port.
        await this.serve({ tcp: false, udp: false });
        if (port !== 0 || tries === PORT_TRIES) throw error;
      }
    }
  }

  /** Opens and closes either transport on its port; connections of one that closes end. */
  async serve({ tcp, udp }: Readonly<Record<Transport, boolean>>): Promise<void> {
    if (tcp && !this.#server.isListening) {
      await this.#server.listen({ port: this.#port, host: this.#host });
      this.#port = this.#server.port;
    }
    if (!tcp && this.#server.isListening) await this.#server.close();
    if (udp && !this.#udp) await this.#openUdp();
    if (!udp && this.#udp) {
      const socket = this.#udp;
      this.#udp = undefined;
      await new Promise<void>((done) => socket.close(() => done()));
    }
  }

  async #openUdp(): Promise<void> {
    const socket = dgram.createSocket("udp4");
    socket.on("message", (frame, { address, port }) => this.handle(frame, this.#wayTo(address, port)));
    await new Promise<void>((ready, failed) => socket.once("error", failed).bind(this.#port, this.#host, () => ready()));
    socket.removeAllListeners("error");
    socket.on("error", () => {});
    this.#port = socket.address().port;
    this.#udp = socket;
  }

  #wayTo(address: string, port: number): Way {
    const sendTo = (frame: Buffer, socket: dgram.Socket | undefined) => {
      const answers = this.udpAnswers;
      if (answers === "source") socket?.send(frame, port, address, () => {});
      // The client's own node is where a response has the node that it is for.
      else socket?.send(frame, answers.port === "source" ? port : answers.port, answers.host(frame[4] ?? 0), () => {});
    };
    return {
      transport: "udp",
      client: `${address}:${port}`,
      node: undefined,
      send: (frame) => {
        if (this.udpFrom === undefined) sendTo(frame, this.#udp);
        else this.#sendFrom(this.udpFrom, (socket) => sendTo(frame, socket));
      },
      sendAsStranger: (frame) => {
        this.#stranger ??= dgram.createSocket("udp4").on("error", () => {});
        sendTo(frame, this.#stranger);
      },
      notify() {},
      hangUp() {},
    };
  }

  #sendFrom(address: string, send: (socket: dgram.Socket) => void): void {
    this.#elsewhere ??= new Promise((ready) => {
      const socket = dgram.createSocket("udp4").on("error", () => {});
      socket.bind(0, address, () => ready(socket));
    });
    void this.#elsewhere.then(send);
  }

  /** TCP connections that are open now. */
  connections(): number {
    return this.#server.connections.size;
  }

  /** Nodes of connections that had their handshake. */
  nodes(): ReadonlySet<number> {
    return new Set([...this.#server.connections].flatMap(({ node }) => (node === undefined ? [] : [node])));
  }

  /** Ends all connections, as a restart of the unit or of the network does. */
  drop(how: "fin" | "rst" = "rst"): void {
    this.#server.drop(how);
  }

  /** Takes a frame; called by both transports. */
  handle(frame: Buffer, way: Way): void {
    this.counts.frames++;
    const command = parseCommand(frame);
    if (!command) {
      this.noteViolation(`a frame that is not a command: ${frame.toString("hex", 0, 16)}`);
      return;
    }
    const isRepeated = this.#isRepeated(way.client + frame.toString("latin1"));
    if (isRepeated) this.counts.repeats++;
    this.#update?.(this.memory, performance.now() - this.#began);
    const { items, endCode, data, from } = this.#execute(command);
    const { code, sid, to, from: source, bytes } = command;
    const request: FinsRequest = { transport: way.transport, code, sid, to, from: source, items, bytes, isRepeated };
    this.#note(request);
    const odd = this.misbehave?.(request) ?? {};
    if (odd.hangUp) way.hangUp(odd.hangUp);
    else if (odd.notification !== undefined) way.notify(odd.notification);
    else if (!odd.isSilent && command.wantsResponse) this.#answer(command, { endCode, data }, from, odd, way);
  }

  #isRepeated(frame: string): boolean {
    if (this.#frames.includes(frame)) return true;
    this.#frames.push(frame);
    if (this.#frames.length > KEPT_FRAMES) this.#frames.shift();
    return false;
  }

  #note(request: FinsRequest): void {
    this.lastRequests.push(request);
    if (this.lastRequests.length > KEPT_REQUESTS) this.lastRequests.shift();
    if (request.isRepeated) return;
    this.counts.requests++;
    this.counts.items += request.items.length;
  }

  /** What is said to a command, and by which node. */
  #execute(command: FinsCommand): FinsAnswer & { readonly items: readonly ItemRequest[]; readonly from: number } {
    const { network, node, unit } = command.to;
    if (node === BROADCAST) this.noteViolation("a broadcast");
    const refused = (endCode: number, from = this.node, data = NO_DATA) => ({ endCode, data, items: [], from });
    let controller: FinsController = this;
    if (network !== 0 && network !== this.network) {
      const other = this.networks.get(network);
      if (!other) return refused(END_CODES.noRoute);
      const behind = other.nodes.get(node);
      const { gateway } = other;
      if (!behind) return refused(RELAY_ERROR | END_CODES.nodeNotInNetwork, gateway.node, Buffer.of(gateway.network, gateway.node));
      controller = behind;
    } else if (node !== 0 && node !== this.node) return refused(this.wrongNode ?? END_CODES.nodeNotInNetwork);
    const from = controller === this ? this.node : node;
    if (unit !== CPU) return refused(END_CODES.noSuchUnit, from);
    const executed = execute(controller, command);
    if (executed) return { ...executed, from };
    this.noteViolation(`the command ${command.code.toString(16).padStart(4, "0")}, which does not read`);
    return refused(END_CODES.notSupported, from);
  }

  #answer(command: FinsCommand, executed: FinsAnswer, from: number, odd: Misbehaviour, way: Way): void {
    const isFull = this.#inFlight >= this.queue;
    if (isFull && this.overQueue === undefined) return;
    const readsMemory = command.code >> 8 === 1;
    const endCode = odd.endCode ?? (isFull ? this.overQueue : readsMemory ? this.readError : undefined);
    const frame = this.#frameOf(command, endCode === undefined ? executed : { endCode, data: NO_DATA }, from, odd.relay ?? this.relay, way);
    const answer = odd.change ? odd.change(frame) : frame;
    this.#inFlight++;
    this.mostInFlight = Math.max(this.mostInFlight, this.#inFlight);
    this.#later(odd.delayMs ?? this.answerDelayMs, () =>
      this.#inTurn(() => {
        this.#inFlight--;
        if (odd.strangerFirst) way.sendAsStranger(withOtherData(answer));
        way.send(answer);
        if (odd.againAfterMs !== undefined) this.#later(odd.againAfterMs, () => way.send(answer));
      }),
    );
  }

  #frameOf(command: FinsCommand, { endCode, data }: FinsAnswer, from: number, relay: RelayError | undefined, way: Way): Buffer {
    // A connection fills in the node that its client left open.
    const to = command.from.node === 0 ? (way.node ?? 0) : command.from.node;
    if (relay) {
      this.counts.errors++;
      const where = relay.isCut ? NO_DATA : Buffer.of(relay.network, relay.node);
      return responseTo(command, { endCode: RELAY_ERROR | relay.endCode | this.statusBits, data: where }, relay.node, to);
    }
    if (endCode !== END_CODES.normal) this.counts.errors++;
    else this.counts.payloadBytes += data.length;
    return responseTo(command, { endCode: endCode | this.statusBits, data }, from, to);
  }

  #inTurn(work: () => void): void {
    if (!this.answersBackwards) {
      work();
      return;
    }
    this.#held.push(work);
    if (this.#held.length > 1) return;
    this.#later(BACKWARDS_AFTER_MS, () => {
      const held = this.#held.reverse();
      this.#held = [];
      for (const one of held) one();
    });
  }

  #later(ms: number, work: () => void): void {
    if (ms <= 0) {
      work();
      return;
    }
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, ms);
    this.#timers.add(timer);
  }

  noteViolation(words: string): void {
    this.violations.push(words);
    if (this.violations.length > KEPT_VIOLATIONS) this.violations.shift();
  }

  /** Forgets counts, commands and violations. */
  resetCounts(): void {
    Object.assign(this.counts, NO_COUNTS);
    this.lastRequests.length = 0;
    this.violations.length = 0;
    this.mostInFlight = 0;
  }

  /** Idempotent. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#stranger?.close();
    this.#stranger = undefined;
    (await this.#elsewhere)?.close();
    this.#elsewhere = undefined;
    await this.serve({ tcp: false, udp: false });
  }
}

/** A response that would be taken for the right one by its header. */
function withOtherData(frame: Buffer): Buffer {
  const changed = Buffer.from(frame);
  for (let at = 14; at < changed.length; at++) changed[at] = (changed[at] ?? 0) ^ 0xff;
  return changed;
}

export async function startFinsPlc(options: FinsPlcOptions = {}): Promise<FinsPlc> {
  const plc = new FinsPlc(options);
  await plc.listen(options.port ?? 0, options.transports ?? { tcp: true, udp: true });
  return plc;
}
