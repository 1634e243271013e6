import { FaultError } from "../../../src/model/fault.ts";
import { ReasonError } from "../../../src/model/reason.ts";
import type { DriverContext } from "../../driver.ts";
import { createDeviceMemory, createIdCounter } from "../../lib/ids.ts";
import type { Take } from "../../lib/tagged.ts";
import { STATUS } from "../cip.ts";
import { openConnection } from "../forward-open.ts";
import { type CipLink, isRouteReply } from "../link.ts";
import { CONNECTION_ENDS_MS, type Route, routed, routeMs, routeWords } from "../manager.ts";
import { refusalOf, routeFailure, statusCode } from "../refusals.ts";
import {
  afterDhpHeader,
  afterRequester,
  DHP_TNS_AT,
  ENVELOPE_TNS_AT,
  enveloped,
  type FileReply,
  parseCommandReply,
  toNode,
} from "./frames.ts";

/** How PCCC commands come to a controller and its replies back. */
export interface FileChannel {
  /** `device 10.0.0.5:44818`, `DH+ channel A, node 12`. */
  readonly words: string;
  /** Throws as `TaggedExchange.ask`, and FaultError or ReasonError where the command does not come through. */
  ask<T>(ctx: DriverContext, describe: () => string, command: Buffer, take: Take<FileReply, T>): Promise<T>;
  /** Opens what is due before the next command. */
  ready(ctx: DriverContext): Promise<void>;
  /** True: without traffic it ends. */
  readonly mustBeKept: boolean;
}

/** Numbers of commands by `host:port`, over all connections: a device may give a new one the late answer to a command of the one before it. */
const numbersOf = createDeviceMemory(() => createIdCounter(16));

/** In the envelope of CIP, each command by itself along the route. */
export class EnvelopedChannel implements FileChannel {
  readonly mustBeKept = false;
  readonly #link: CipLink;
  readonly #route: Route;

  constructor(link: CipLink, route: Route) {
    this.#link = link;
    this.#route = route;
  }

  get words(): string {
    return `PCCC in CIP, ${routeWords(this.#route)}`;
  }

  async ready(): Promise<void> {}

  ask<T>(ctx: DriverContext, describe: () => string, command: Buffer, take: Take<FileReply, T>): Promise<T> {
    const tns = numbersOf(this.#link.where).next();
    const cip = enveloped(command);
    cip.writeUInt16LE(tns, ENVELOPE_TNS_AT);
    const packet = this.#link.unconnectedPacket(routed(cip, this.#route, routeMs(ctx.timeouts.answerMs)), cip[0]);
    return this.#link.ask<T>(ctx, describe, packet, (reply, done, refuse) => {
      const { bytes, at, end, status, extended } = reply;
      if (status !== STATUS.ok) {
        const isRoute = isRouteReply(reply, packet.service);
        refuse(
          isRoute
            ? routeFailure(status, extended, `no way to the controller (${routeWords(this.#route)})`)
            : envelopeRefusal(status, extended, describe()),
        );
        return undefined;
      }
      const from = afterRequester(bytes, at, end);
      if (from === undefined) return `${end - at} bytes answer Execute PCCC`;
      const answer = parseCommandReply(bytes, from, end, command[0] ?? 0, tns);
      return typeof answer === "string" ? answer : take(answer, done, refuse);
    });
  }
}

/** Path or object unknown, service not supported. */
const NO_OBJECT: ReadonlySet<number> = new Set([STATUS.pathSegment, 0x05, STATUS.notSupported, 0x16]);

/** The device itself refuses the envelope. */
const envelopeRefusal = (status: number, extended: number | undefined, what: string): FaultError =>
  NO_OBJECT.has(status) ? notThere(status, extended, what) : refusalOf(status, extended, what);

const notThere = (status: number, extended: number | undefined, what: string): FaultError =>
  new FaultError(
    "device_error",
    `${what}: ${statusCode(status, extended)} (the device takes no PCCC commands: is it an SLC, MicroLogix or PLC-5, or a Logix controller with Map PLC/SLC Messages?)`,
    { scope: "everything" },
  );

/** A node behind a channel of a DH+ module. */
export interface DhpNode {
  /** 1 is A, 2 is B. */
  readonly channel: 1 | 2;
  readonly node: number;
}

const DHP_OBJECT = 0xa6;
/** Bytes of a message with its sequence count; the parameters of this size are those that modules are known to take. */
const DHP_BYTES = 258;

/** Behind a path of the connection: the channel, and its connection point. */
export const dhpPath = ({ channel }: DhpNode): Buffer => Buffer.of(0x20, DHP_OBJECT, 0x24, channel, 0x2c, 0x01);

export const dhpWords = ({ channel, node }: DhpNode): string =>
  `DH+ channel ${channel === 1 ? "A" : "B"}, node ${node.toString(8).padStart(2, "0")} (octal)`;

/** Over a connection to a channel of a DH+ module, without an envelope. */
export class DhpChannel implements FileChannel {
  readonly mustBeKept = true;
  readonly #link: CipLink;
  readonly #route: Route;
  readonly #to: DhpNode;

  constructor(link: CipLink, route: Route, to: DhpNode) {
    this.#link = link;
    this.#route = route;
    this.#to = to;
  }

  get words(): string {
    return `${dhpWords(this.#to)} behind ${routeWords(this.#route)}`;
  }

  async ready(ctx: DriverContext): Promise<void> {
    if (this.#link.open && performance.now() - this.#link.answeredAt <= CONNECTION_ENDS_MS) return;
    this.#link.use(undefined);
    const opened = await openConnection(this.#link, this.#route, [DHP_BYTES], ctx, dhpPath(this.#to));
    if (typeof opened === "string")
      throw new ReasonError("UNKNOWN", `the DH+ module at ${routeWords(this.#route)} opens no connection: ${opened}`);
    this.#link.use(opened.open);
  }

  ask<T>(ctx: DriverContext, describe: () => string, command: Buffer, take: Take<FileReply, T>): Promise<T> {
    const tns = numbersOf(this.#link.where).next();
    const message = toNode(this.#to.node, command);
    message.writeUInt16LE(tns, DHP_TNS_AT);
    return this.#link.askRaw<T>(ctx, describe, this.#link.connectedPacket(message), ({ message: bytes, from, to }, done, refuse) => {
      const at = afterDhpHeader(from, to);
      if (at === undefined) return `a message of ${to - from} bytes from DH+`;
      const answer = parseCommandReply(bytes, at, to, command[0] ?? 0, tns);
      return typeof answer === "string" ? answer : take(answer, done, refuse);
    });
  }
}
