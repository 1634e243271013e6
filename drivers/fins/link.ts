import type { Warning } from "../../src/model/warning.ts";
import type { DriverContext, Endpoint } from "../driver.ts";
import type { Purpose } from "../lib/exchange.ts";
import type { Route } from "./frames.ts";

/**
 * What is made of the answer to a request; the frame is valid during the call only. Throws FaultError: the node refused the request;
 * ReasonError: the answer breaks the protocol, or a node on the way could not pass the request on.
 */
export type Take<T> = (frame: Buffer) => T | Promise<T>;

/** FINS commands and their answers over one transport, in whatever order the answers come. */
export interface FinsLink extends Pick<Endpoint, "transport"> {
  /** For messages: `host:port`. */
  readonly where: string;
  readonly route: Route;
  /** The message of a command, for `ask`: made once for a request that is asked again and again. */
  messageOf(command: Uint8Array): Buffer;
  /** Sends a message; its SID is written into it. Throws as `take` does, and ReasonError where no answer comes: NoAnswer with the purpose `help`. */
  ask<T>(ctx: DriverContext, describe: () => string, message: Buffer, take: Take<T>, purpose?: Purpose): Promise<T>;
  /** About the way to the controller. */
  warnings(): readonly Warning[];
  alive(): boolean;
  /** Idempotent, never throws. */
  close(): Promise<void>;
}

/** Requests under way on one link at most. */
export const MAX_IN_FLIGHT = 8;
