import { DeviceServer } from "../../simulators/kit/device-server.ts";
import type { Listening } from "../simulator.ts";
import { DeviceConnection } from "./simulator-connection.ts";
import { type CipMessage, LogixCpu } from "./simulator-cpu.ts";
import type { CipReply, CipRequest, CipStatus, Segment } from "./simulator-frames.ts";
import { BRIDGE, CONTROLLER, type Identity, INPUTS, MICRO } from "./simulator-identity.ts";
import { CONNECTION_ERRORS, ConnectionManager } from "./simulator-manager.ts";
import type { FileCpu } from "./simulator-pccc.ts";
import { LogixProgram } from "./simulator-program.ts";

/** A controller that answers messages and says what it is. */
export interface Controller {
  readonly identity: Identity;
  /** Answers a request in at most `room` bytes. */
  execute(request: CipRequest, room: number): CipReply;
}

/** What is in a slot. `silent`: something that never answers. */
export type Module =
  | { readonly kind: "cpu"; readonly cpu: Controller }
  | { readonly kind: "files"; readonly cpu: FileCpu }
  /** Nodes of DH+ by their numbers, behind channel A (1) or B (2). */
  | { readonly kind: "dhp"; readonly identity: Identity; readonly channel: 1 | 2; readonly nodes: ReadonlyMap<number, FileCpu> }
  | { readonly kind: "other"; readonly identity: Identity }
  | { readonly kind: "silent" };

/** What the device does with one message instead of answering well. */
export type Misbehaviour =
  | { readonly status: CipStatus }
  | { readonly silent: true }
  /** The good answer, late. */
  | { readonly delayMs: number }
  /** The good answer, changed: a CIP reply. */
  | { readonly change: (reply: Buffer) => Buffer }
  /** This many bytes of the frame of the good answer; with nothing behind it. */
  | { readonly cutAfter: number }
  /** An encapsulation status instead of an answer; `hangUp`: with a FIN behind it. */
  | { readonly encapsulation: number; readonly hangUp?: boolean }
  | { readonly ends: "fin" | "rst" };

/** `bridge`: a chassis behind an Ethernet module in slot 2, the CPU in slot 3, an I/O module in slot 4, something silent in slot 5. */
export type Layout = "bridge" | "compact" | "micro";

export interface CipDeviceOptions extends Listening {
  /** Default: compact, a CPU in slot 0 that owns the socket. */
  readonly layout?: Layout;
  readonly program?: LogixProgram;
  /** The controller in slot 0 of another maker. Absent: a Logix or Micro800 with the program. */
  readonly controller?: Controller;
  /** Before each message; ms since the start. Values that change by themselves are put here. */
  readonly update?: (program: LogixProgram, ms: number) => void;
}

const KEPT_MESSAGES = 1000;
const KEPT_VIOLATIONS = 50;
const BACKPLANE = 1;
const [CLASS_ROUTER, ROUTER_INSTANCE] = [2, 1];
const CLASS_DHP = 0xa6;

/**
 * A controller on EtherNet/IP. Every public field is its state and may be set while it runs: what is agreed when a connection opens holds
 * for the next connections, everything else for the next message.
 */
export class CipDevice {
  readonly layout: Layout;
  readonly cpu: LogixCpu;
  /** Modules by slot: CPUs, I/O. The one that owns the socket is in `ownerSlot`. */
  readonly slots = new Map<number, Module>();
  readonly ownerSlot: number;
  readonly manager = new ConnectionManager<DeviceConnection>();
  /** A bridge to a serial line that owns the socket and is in no slot. */
  owner: Identity | undefined;

  /** Of a message without a connection, either way. */
  unconnectedBytes = 504;
  /** Register Session is refused with this status. */
  registerStatus: number | undefined;
  maxSessions = Number.POSITIVE_INFINITY;
  /** What is sent to a silent slot is given up after its ticks, or after so many ms where that is sooner. */
  silentSlotMs = Number.POSITIVE_INFINITY;
  /** A message to a silent slot has no answer at all. */
  isMuteAboutSlots = false;
  answerDelayMs = 0;
  /** Asked for every message: reads, packets, opening and closing connections. */
  misbehave: ((message: CipMessage) => Misbehaviour | undefined) | undefined;

  readonly counts = {
    accepted: 0,
    sessions: 0,
    messages: 0,
    items: 0,
    direct: 0,
    routed: 0,
    connected: 0,
    duplicates: 0,
    unknownConnection: 0,
  };
  /** Connections whose TCP connection ended before a Forward Close. */
  leftOpen = 0;
  /** The last messages, the oldest first. */
  readonly lastMessages: CipMessage[] = [];
  /** What a client did that no right one does, in words: services that do not read, more than was agreed. */
  readonly violations: string[] = [];
  /** Most messages of one class 3 connection that waited for their answers at once; one that never had an answer counts on. */
  mostInFlight = 0;

  readonly #server: DeviceServer<DeviceConnection>;
  readonly #began = performance.now();
  readonly #update: CipDeviceOptions["update"];
  #nextSession = 0x1500_0001;

  constructor({ layout = "compact", program = new LogixProgram(), controller, update }: CipDeviceOptions) {
    this.layout = layout;
    this.#update = update;
    this.cpu = new LogixCpu(program, layout === "micro" ? MICRO : CONTROLLER);
    this.cpu.onViolation = (words) => this.noteViolation(words);
    this.ownerSlot = layout === "bridge" ? 2 : 0;
    if (layout === "bridge") {
      this.slots.set(2, { kind: "other", identity: BRIDGE }).set(3, { kind: "cpu", cpu: this.cpu });
      this.slots.set(4, { kind: "other", identity: INPUTS }).set(5, { kind: "silent" });
    } else this.slots.set(0, { kind: "cpu", cpu: controller ?? this.cpu });
    if (layout === "micro") {
      this.cpu.hasMultiple = false;
      this.cpu.hasChangeMark = false;
      this.manager.grants.largeBytes = 0;
    }
    this.#server = new DeviceServer(
      (socket) => {
        this.counts.accepted++;
        return new DeviceConnection(this, socket);
      },
      (connection) => this.#onClosed(connection),
    );
  }

  listen(where: Listening): Promise<void> {
    return this.#server.listen(where);
  }

  get port(): number {
    return this.#server.port;
  }

  get program(): LogixProgram {
    return this.cpu.program;
  }

  /** TCP connections that are open now. */
  connections(): number {
    return this.#server.connections.size;
  }

  /** Sessions that are registered now. */
  sessions(): number {
    return [...this.#server.connections].filter(({ session }) => session !== undefined).length;
  }

  nextSession(): number {
    return this.#nextSession++;
  }

  #onClosed(connection: DeviceConnection): void {
    this.leftOpen += this.manager.all().filter(({ owner }) => owner === connection).length;
    this.manager.lose(({ owner }) => owner === connection);
  }

  /** The module that a route leads to, or the extended status of why there is none. */
  routeTo(path: readonly Segment[]): { readonly slot: number; readonly module: Module } | number {
    const [first, ...rest] = path;
    const isRouter = (segments: readonly Segment[]) => {
      const [type, instance] = segments;
      if (segments.length === 0 || isChannel(segments)) return true;
      return (
        segments.length === 2 &&
        type?.kind === "class" &&
        type.value === CLASS_ROUTER &&
        instance?.kind === "instance" &&
        instance.value === ROUTER_INSTANCE
      );
    };
    if (first?.kind !== "port") return isRouter(path) ? this.#moduleAt(this.ownerSlot) : CONNECTION_ERRORS.badSegment;
    if (this.layout === "micro" || first.port !== BACKPLANE) return CONNECTION_ERRORS.noPort;
    if (typeof first.link !== "number" || !isRouter(rest)) return CONNECTION_ERRORS.badSegment;
    return this.#moduleAt(first.link);
  }

  #moduleAt(slot: number): { readonly slot: number; readonly module: Module } | number {
    const module = this.slots.get(slot);
    return module ? { slot, module } : CONNECTION_ERRORS.noLink;
  }

  /** Ends all TCP connections, as a restart or the network does. */
  drop(how: "fin" | "rst" = "rst"): void {
    this.#server.drop(how);
  }

  /** Forgets all class 3 connections without a word: what comes over them is ignored. */
  loseConnections(): void {
    this.manager.lose();
  }

  /** Forgets all sessions: what comes in them is refused with 64. */
  loseSessions(): void {
    for (const connection of this.#server.connections) connection.session = undefined;
  }

  /** Loads another program: instances of symbols and types change; `change` may make and remove tags. Connections stay. */
  download(change: (program: LogixProgram) => void = () => {}): void {
    change(this.program);
    this.program.renumber();
  }

  /** Takes a message into the books; called by connections. */
  noteMessage(message: CipMessage): void {
    this.counts.messages++;
    this.counts.items += message.items;
    this.counts[message.via]++;
    this.lastMessages.push(message);
    if (this.lastMessages.length > KEPT_MESSAGES) this.lastMessages.shift();
    this.#update?.(this.program, performance.now() - this.#began);
  }

  noteViolation(words: string): void {
    this.violations.push(words);
    if (this.violations.length > KEPT_VIOLATIONS) this.violations.shift();
  }

  /** Forgets counts, messages and violations. */
  resetCounts(): void {
    for (const counts of [this.counts, this.manager.counts, this.cpu.counts] as readonly Record<string, number>[])
      for (const name of Object.keys(counts)) counts[name] = 0;
    this.lastMessages.length = 0;
    this.violations.length = 0;
    this.mostInFlight = 0;
    this.leftOpen = 0;
  }

  close(): Promise<void> {
    return this.#server.close();
  }
}

/** Channel A or B of a DH+ module, and its connection point. */
function isChannel(segments: readonly Segment[]): boolean {
  const [type, , point] = segments;
  return segments.length === 3 && type?.kind === "class" && type.value === CLASS_DHP && point?.kind === "point" && point.value === 1;
}

export async function startCipDevice(options: CipDeviceOptions = {}): Promise<CipDevice> {
  const device = new CipDevice(options);
  await device.listen(options);
  return device;
}
