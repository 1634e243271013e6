import type { FinsController } from "./simulator-commands.ts";
import type { FinsPlace } from "./simulator-frames.ts";
import type { ItemRequest } from "./simulator-memory.ts";

/* What a controller may do, and what it says of the commands that came: the types of its state. */

export type Transport = "tcp" | "udp";

/** A unit on the way could not pass a command on. */
export interface RelayError {
  /** Without the relay's own bit: 0x0201. */
  readonly endCode: number;
  /** The place where it failed. */
  readonly network: number;
  readonly node: number;
  /** The frame stops after the end code: where it failed is not told. */
  readonly isCut?: boolean;
}

/** A network behind the controller, or behind one of its neighbours. */
export interface FinsNetwork {
  /** Who passes commands on to it: named by relay errors. */
  readonly gateway: { readonly network: number; readonly node: number };
  readonly nodes: Map<number, FinsController>;
}

/** A command as it came, and what it was about. */
export interface FinsRequest {
  readonly transport: Transport;
  readonly code: number;
  readonly sid: number;
  readonly to: FinsPlace;
  readonly from: FinsPlace;
  readonly items: readonly ItemRequest[];
  /** Bytes of its frame. */
  readonly bytes: number;
  /** The same frame came shortly before. */
  readonly isRepeated: boolean;
}

/** What the controller does with one command instead of answering well. Several at once where they go together. */
export interface Misbehaviour {
  readonly endCode?: number;
  readonly relay?: RelayError;
  readonly isSilent?: boolean;
  readonly delayMs?: number;
  /** The response frame, changed. */
  readonly change?: (frame: Buffer) => Buffer;
  /** The same answer again, so much later. */
  readonly againAfterMs?: number;
  /** Over UDP: first an answer with other data from another port. */
  readonly strangerFirst?: boolean;
  /** Over TCP: an error notification with this code in the place of the answer; the connection ends. */
  readonly notification?: number;
  readonly hangUp?: "fin" | "rst";
}

/** The way back to who sent a command. */
export interface Way {
  readonly transport: Transport;
  /** Tells one client from the other. */
  readonly client: string;
  /** Node that the connection has; undefined over UDP. */
  readonly node: number | undefined;
  send(frame: Buffer): void;
  /** From another port. */
  sendAsStranger(frame: Buffer): void;
  notify(code: number): void;
  hangUp(how: "fin" | "rst"): void;
}

/** The place where answers over UDP go: `source`, the address and port they came from; else as a static conversion or a table says. */
export type UdpAnswers = "source" | { readonly host: (node: number) => string; readonly port: number | "source" };
