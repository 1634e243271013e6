import type net from "node:net";
import { FramedConnection } from "../../simulators/kit/framed-connection.ts";
import { type CipMessage, describeMessage } from "./simulator-cpu.ts";
import type { CipDevice, Misbehaviour, Module } from "./simulator-device.ts";
import {
  type Carried,
  type CipReply,
  type CipRequest,
  COMMANDS,
  carry,
  cutFrame,
  ENCAPSULATION_STATUS,
  type Encapsulated,
  encapsulate,
  encapsulatedIn,
  encodeReply,
  parseCarried,
  parseRequest,
  type Segment,
  word,
} from "./simulator-frames.ts";
import { identityBytes, identityItem } from "./simulator-identity.ts";
import { CONNECTION_ERRORS, MANAGER, parseUnconnectedSend } from "./simulator-manager.ts";
import { STATUS } from "./simulator-program.ts";

const EMPTY = Buffer.alloc(0);
const SEQUENCE_BYTES = 2;
/** List Services: the one that every target has, for messages over TCP. */
const SERVICE_NAME = "Communications\0\0";
const OVER_TCP = 0x0020;
/** Get Attributes All of class 1: what every module answers. */
const [ATTRIBUTES_ALL, IDENTITY_CLASS] = [0x01, 0x01];

/** How a reply leaves: in the frame and with the addresses that its request came with. */
type Send = (reply: Buffer, odd?: Misbehaviour) => void;

/** One TCP connection at the device's end. */
export class DeviceConnection extends FramedConnection {
  /** Undefined until it is registered. */
  session: number | undefined;

  readonly #device: CipDevice;

  constructor(device: CipDevice, socket: net.Socket) {
    super(socket, cutFrame);
    this.#device = device;
  }

  protected override onGarbage(): void {
    this.#device.noteViolation("a frame that is longer than any");
    this.hangUp("rst");
  }

  protected override onFrame(bytes: Buffer): void {
    const frame = encapsulatedIn(bytes);
    switch (frame.command) {
      case COMMANDS.listServices:
        this.#reply(frame, Buffer.concat([word(1), word(0x0100), word(20), word(1), word(OVER_TCP), Buffer.from(SERVICE_NAME)]));
        return;
      case COMMANDS.listIdentity:
        this.#reply(frame, identityItem(this.#ownIdentity(), this.socket.localAddress ?? "", this.#device.port));
        return;
      case COMMANDS.registerSession:
        this.#register(frame);
        return;
      case COMMANDS.unregisterSession:
        this.session = undefined;
        this.hangUp("fin");
        return;
      case COMMANDS.sendRequest:
      case COMMANDS.sendUnit:
        this.#onSend(frame);
        return;
      default:
        this.#device.noteViolation(`the command 0x${frame.command.toString(16)}`);
        this.#reply(frame, EMPTY, ENCAPSULATION_STATUS.invalidCommand);
    }
  }

  #ownIdentity() {
    if (this.#device.owner) return this.#device.owner;
    const owner = this.#device.slots.get(this.#device.ownerSlot);
    if (owner?.kind === "other" || owner?.kind === "dhp") return owner.identity;
    return owner?.kind === "files" || owner?.kind === "cpu" ? owner.cpu.identity : this.#device.cpu.identity;
  }

  #reply({ command, session, context }: Encapsulated, payload: Buffer, status = 0): void {
    this.write(encapsulate({ command, session, status, context, payload }));
  }

  #register(frame: Encapsulated): void {
    const { registerStatus, maxSessions } = this.#device;
    const refuse = (status: number) => this.#reply(frame, frame.payload, status);
    if (frame.payload.length !== 4) refuse(ENCAPSULATION_STATUS.invalidLength);
    else if (frame.payload.readUInt16LE(0) !== 1) refuse(ENCAPSULATION_STATUS.unsupportedRevision);
    else if (this.session !== undefined) refuse(ENCAPSULATION_STATUS.invalidCommand);
    else if (registerStatus !== undefined) refuse(registerStatus);
    else if (this.#device.sessions() >= maxSessions) refuse(ENCAPSULATION_STATUS.noMemory);
    else {
      this.#device.counts.sessions++;
      this.session = this.#device.nextSession();
      this.#reply({ ...frame, session: this.session }, frame.payload);
    }
  }

  #onSend(frame: Encapsulated): void {
    if (this.session === undefined || frame.session !== this.session) {
      this.#reply(frame, EMPTY, ENCAPSULATION_STATUS.invalidSession);
      return;
    }
    const carried = parseCarried(frame.payload);
    const isUnit = frame.command === COMMANDS.sendUnit;
    if (!carried || (carried.kind === "connected") !== isUnit) {
      this.#device.noteViolation(`a payload that cannot be taken apart: ${frame.payload.toString("hex", 0, 40)}`);
      this.#reply(frame, EMPTY, ENCAPSULATION_STATUS.incorrectData);
    } else if (carried.kind === "connected") this.#onConnected(frame, carried);
    else this.#onUnconnected(frame, carried.message);
  }

  /** What comes with the id of no connection is ignored, and so is what comes twice. */
  #onConnected(frame: Encapsulated, { connection: id, sequence, message }: Carried & { kind: "connected" }): void {
    const connection = this.#device.manager.use(id);
    if (!connection || connection.owner !== this) {
      this.#device.counts.unknownConnection++;
      return;
    }
    if (connection.lastSequence === sequence) {
      this.#device.counts.duplicates++;
      return;
    }
    connection.lastSequence = sequence;
    if (message.length + SEQUENCE_BYTES > connection.requestBytes) {
      this.#device.noteViolation(`a message of ${message.length + SEQUENCE_BYTES} bytes where ${connection.requestBytes} are agreed`);
      return;
    }
    const send = this.#sender(frame, (reply) => {
      connection.inFlight--;
      return carry({ kind: "connected", connection: connection.answerId, sequence, message: reply });
    });
    connection.inFlight++;
    this.#device.mostInFlight = Math.max(this.#device.mostInFlight, connection.inFlight);
    const module = this.#device.slots.get(connection.slot ?? this.#device.ownerSlot);
    if (module?.kind === "dhp") {
      this.#onDhp(message, module, send);
      return;
    }
    this.#execute(message, "connected", module, connection.answerBytes - SEQUENCE_BYTES, send);
  }

  /** Destination link and node, source link and node, then a command. */
  #onDhp(message: Buffer, { nodes }: Module & { kind: "dhp" }, send: Send): void {
    const node = message.length < 13 ? undefined : nodes.get(message.readUInt16LE(2));
    const command = message.subarray(8);
    const reply = node?.command(command) ?? Buffer.of((command[0] ?? 0) | 0x40, 0x02, command[2] ?? 0, command[3] ?? 0);
    send(Buffer.concat([Buffer.alloc(8), reply]));
  }

  #onUnconnected(frame: Encapsulated, message: Buffer): void {
    const send = this.#sender(frame, (reply) => carry({ kind: "unconnected", message: reply }));
    const request = parseRequest(message);
    const [first] = request?.path ?? [];
    const { slots, ownerSlot, unconnectedBytes } = this.#device;
    if (request && first?.kind === "class" && first.value === MANAGER.class) this.#onManager(request, send);
    else this.#execute(message, "direct", slots.get(ownerSlot), unconnectedBytes, send);
  }

  #onManager(request: CipRequest, send: Send): void {
    const { manager } = this.#device;
    switch (request.service) {
      case MANAGER.unconnectedSend:
        this.#onUnconnectedSend(request, send);
        return;
      case MANAGER.forwardOpen:
      case MANAGER.largeForwardOpen:
        this.#answer(request, "direct", send, () => manager.open(request, this, (path) => this.#slotFor(path)));
        return;
      case MANAGER.forwardClose:
        this.#answer(request, "direct", send, () => manager.close(request, this));
        return;
      default:
        this.#device.noteViolation(`service 0x${request.service.toString(16)} of the connection manager`);
        send(encodeReply(request.service, STATUS.serviceUnsupported));
    }
  }

  #slotFor(path: readonly Segment[]): { readonly slot: number } | number {
    const found = this.#device.routeTo(path);
    if (typeof found === "number") return found;
    if (found.module.kind === "silent") return CONNECTION_ERRORS.timedOut;
    return found;
  }

  #onUnconnectedSend(request: CipRequest, send: Send): void {
    const fail = (extended: number) => send(encodeReply(MANAGER.unconnectedSend, { general: 1, extended: [extended], data: Buffer.of(1) }));
    const embedded = parseUnconnectedSend(request);
    if (this.#device.layout === "micro") send(encodeReply(MANAGER.unconnectedSend, STATUS.serviceUnsupported));
    else if (!embedded?.route) fail(0x0205);
    else {
      const place = this.#device.routeTo(embedded.route);
      if (typeof place === "number") fail(place);
      else if (place.module.kind === "silent") {
        if (this.#device.isMuteAboutSlots) return;
        this.after(Math.min(embedded.ticksMs, this.#device.silentSlotMs), () => fail(CONNECTION_ERRORS.timedOut));
      } else this.#execute(embedded.message, "routed", place.module, this.#device.unconnectedBytes, send);
    }
  }

  /** Has a module answer a message in at most `room` bytes. */
  #execute(message: Buffer, via: CipMessage["via"], module: Module | undefined, room: number, send: Send): void {
    const request = parseRequest(message);
    if (!request) {
      this.#device.noteViolation(`a message that cannot be taken apart: ${message.toString("hex", 0, 40)}`);
      send(encodeReply(message[0] ?? 0, STATUS.noSuchTag));
      return;
    }
    this.#answer(request, via, send, () => {
      if (via !== "connected" && request.bytes > this.#device.unconnectedBytes) {
        this.#device.noteViolation(`a message of ${request.bytes} bytes without a connection`);
        return STATUS.requestTooLarge;
      }
      if (module?.kind === "cpu") return module.cpu.execute(request, room);
      if (module?.kind === "files") {
        const { owner } = this.#device;
        return owner && isIdentity(request) ? { general: 0, data: identityBytes(owner) } : module.cpu.execute(request);
      }
      if ((module?.kind === "other" || module?.kind === "dhp") && isIdentity(request))
        return { general: 0, data: identityBytes(module.identity) };
      return STATUS.noSuchMember;
    });
  }

  /** Notes a message, and answers it well or as a test wants. */
  #answer(request: CipRequest, via: CipMessage["via"], send: Send, answer: () => CipReply): void {
    const message = describeMessage(request, via);
    this.#device.noteMessage(message);
    const odd = this.#device.misbehave?.(message);
    if (odd && "ends" in odd) this.hangUp(odd.ends);
    else if (!odd || !("silent" in odd)) {
      const reply = encodeReply(request.service, odd && "status" in odd ? odd.status : answer());
      const late = () => send(odd && "change" in odd ? odd.change(reply) : reply, odd);
      const delayMs = odd && "delayMs" in odd ? odd.delayMs : this.#device.answerDelayMs;
      if (delayMs > 0) this.after(delayMs, late);
      else late();
    }
  }

  #sender(frame: Encapsulated, wrap: (reply: Buffer) => Buffer): Send {
    return (reply, odd) => {
      const payload = wrap(reply);
      if (odd && "encapsulation" in odd) {
        this.#reply(frame, EMPTY, odd.encapsulation);
        if (odd.hangUp) this.hangUp("fin");
      } else if (odd && "cutAfter" in odd) {
        this.write(encapsulate({ ...frame, status: 0, payload }).subarray(0, odd.cutAfter));
        this.hangUp("fin");
      } else this.#reply(frame, payload);
    };
  }
}

function isIdentity({ service, path: [first] }: CipRequest): boolean {
  return service === ATTRIBUTES_ALL && first?.kind === "class" && first.value === IDENTITY_CLASS;
}
