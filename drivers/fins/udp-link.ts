import { literalAddress } from "../../src/model/address.ts";
import type { FinsAddress } from "../../src/model/details.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { DriverContext, Endpoint } from "../driver.ts";
import { NoAnswer, type Purpose } from "../lib/exchange.ts";
import { createDeviceMemory, IdPool } from "../lib/ids.ts";
import { type Datagrams, openUdp } from "../lib/udp.ts";
import { commandFrame, commandOf, fence, isAnswer, type Route, SID_AT, sidOf } from "./frames.ts";
import { type FinsLink, MAX_IN_FLIGHT, type Take } from "./link.ts";
import type { FinsSettings } from "./settings.ts";

/** An answer may come this much later. */
const LATE_MS = 30_000;
const idsOf = createDeviceMemory(() => new IdPool(8, LATE_MS));

export class UdpLink implements FinsLink {
  readonly transport = "udp";
  readonly where: string;
  readonly route: Route;
  readonly #datagrams: Datagrams;
  readonly #usualPort: number;

  private constructor(datagrams: Datagrams, route: Route, usualPort: number) {
    this.#usualPort = usualPort;
    this.where = datagrams.where;
    this.route = route;
    this.#datagrams = datagrams;
  }

  /**
   * Opens a socket; whether the controller answers shows with the first request. `local` with the node 0 has the last octet of this
   * machine's address, as controllers expect it that answer to the node. Throws ReasonError.
   */
  static async open(
    endpoint: Endpoint,
    local: FinsAddress,
    remote: FinsAddress,
    { local_port, retransmissions }: FinsSettings,
    ctx: DriverContext,
  ): Promise<UdpLink> {
    const datagrams = await openUdp(endpoint, ctx, {
      fence,
      idOf: (datagram) => (isAnswer(datagram) ? sidOf(datagram) : undefined),
      ids: (address) => idsOf(`${address}:${endpoint.port}`),
      maxInFlight: MAX_IN_FLIGHT,
      retransmissions,
      tap: ctx.tap,
      ...(local_port > 0 && { localPort: local_port }),
      // A unit answers from its own port, and one with an IP address table may answer to the same port of the collector.
      ...(local_port !== endpoint.port && { usualPort: endpoint.port }),
    });
    try {
      const source = { ...local, node: local.node === 0 ? ownNode(datagrams.localAddress) : local.node };
      const equal = equalNodes(source, remote);
      if (equal !== undefined) throw new ReasonError("UNKNOWN", equal, { condition: "configuration_invalid" });
      return new UdpLink(datagrams, { source, destination: remote }, endpoint.port);
    } catch (error) {
      await datagrams.close();
      throw error;
    }
  }

  messageOf(command: Uint8Array): Buffer {
    return commandFrame(this.route, command);
  }

  ask<T>(ctx: DriverContext, describe: () => string, message: Buffer, take: Take<T>, purpose: Purpose = "value"): Promise<T> {
    const command = commandOf(message);
    let malformed: ReasonError | undefined;
    const answer = this.#datagrams.request<T>(ctx, {
      frame(id) {
        message[SID_AT] = id;
        return message;
      },
      take(datagram) {
        if (commandOf(datagram) !== command) return undefined;
        try {
          return take(datagram);
        } catch (error) {
          // A datagram has no length of its own: what does not fit may be a stranger's, and the answer may still come.
          if (!(error instanceof ReasonError && error.condition === "protocol_violation")) throw error;
          malformed = error;
          return undefined;
        }
      },
      describe,
    });
    return answer.catch((error: unknown) => {
      if (!(error instanceof ReasonError) || error.reason.type !== "TIMEOUT" || ctx.signal.aborted) throw error;
      if (malformed) throw malformed;
      throw purpose === "help"
        ? new NoAnswer(error.message)
        : new ReasonError("TIMEOUT", error.message, { cause: error, nextStep: this.#stepOfSilence() });
    });
  }

  warnings(): readonly Warning[] {
    const { count, words, most } = this.#datagrams.elsewhere;
    if (words === undefined || most === undefined) return [];
    const came = count === 1 ? "one answer" : `${count} answers`;
    return [
      warning("answers_elsewhere", `${came} came from ${words} and not from ${this.where}, and not a value was taken: ${setTo(most)}`),
    ];
  }

  /** Undefined: nothing is known that is better than the usual advice. */
  #stepOfSilence(): string | undefined {
    const { elsewhere, answersUsualPort } = this.#datagrams;
    if (answersUsualPort)
      return `Set local_port to ${this.#usualPort}: the controller, or a firewall on the way, answers to that port of this machine only.`;
    if (elsewhere.most === undefined) return undefined;
    const step = setTo(elsewhere.most);
    return `${step.charAt(0).toUpperCase()}${step.slice(1)}.`;
  }

  alive(): boolean {
    return this.#datagrams.alive();
  }

  close(): Promise<void> {
    return this.#datagrams.close();
  }
}

const setTo = (place: string): string =>
  `set host and port to ${place} if that is the controller, or correct its second interface, the routes or the address translation (NAT) on the way, so that it answers from its configured address`;

/** The last octet of an IPv4 address. Throws ReasonError: it is none, or no node has that number. */
function ownNode(address: string): number {
  const octet = literalAddress(address)?.family === 4 ? Number(address.split(".")[3]) : 0;
  if (octet >= 1 && octet <= 254) return octet;
  throw new ReasonError("UNKNOWN", `no node number follows from the own address ${address}: write one of 1 to 254 into local_address`, {
    condition: "configuration_invalid",
  });
}

/** Why two nodes of one network cannot talk to each other; undefined: they can. Pure. */
export function equalNodes(local: FinsAddress, remote: FinsAddress): string | undefined {
  if (local.node === 0 || local.node !== remote.node || local.network !== remote.network) return undefined;
  return `local_address and remote_address are both node ${local.node} of network ${local.network}: each node of a network has a number of its own`;
}
