/** What passes between the collector and a device, as it is kept for a capture. */

/** Why bytes are not kept: a log-in, TLS, a message that is encrypted by the protocol itself, a frame that holds a secret of the source. */
export const WITHHELD = ["log_in", "tls", "encrypted", "secret"] as const;
export type Withheld = (typeof WITHHELD)[number];

/**
 * How a connection ended. `out`: by the collector. `refused`: the device answered that nothing listens; `unanswered`: it did not answer at
 * all. Both of these end a connection that never opened.
 */
export const WIRE_ENDINGS = ["fin_out", "fin_in", "reset_in", "refused", "unanswered"] as const;
export type WireEnding = (typeof WIRE_ENDINGS)[number];

/** The device's end of a connection. */
export interface WirePeer {
  readonly transport: "tcp" | "udp";
  /** IP address of the device. */
  readonly address: string;
  /** Its port, as it really is. */
  readonly port: number;
  /** The place where the device connects to: the port of this machine. Absent: the collector connects to the device. */
  readonly listeningPort?: number;
}

/** One connection, from the attempt to open it to its end. Nothing here throws; bytes are copied during the call. */
export interface WireTrace {
  opened(): void;
  /** `withheld`: how many bytes there were is kept, and why they are missing. */
  data(direction: "out" | "in", bytes: Uint8Array, withheld?: Withheld): void;
  ended(how: WireEnding): void;
}

/** The place where connections leave what passes over them. */
export interface Wire {
  /** A connection that is being opened. */
  opening(peer: WirePeer): WireTrace;
  /**
   * The memory that this thread writes to, for another one that has the connections from now on. Absent: connections are in this one.
   */
  memory?(): SharedArrayBuffer;
}

/** One moment of a connection. */
export interface WireEvent {
  /** Counts the events of one source, modulo 2^32. */
  readonly number: number;
  /** Counts the connections of one source. */
  readonly connection: number;
  readonly kind: "opening" | "opened" | "data" | "ended";
  /** Of data: who sent it. */
  readonly direction: "out" | "in";
  /** Bytes that this side, and the other one, had sent before; modulo 2^32. */
  readonly offset: number;
  readonly otherOffset: number;
  /** Of data: so many there were. */
  readonly length: number;
  /** Those that are kept, from the first on. */
  readonly bytes: Uint8Array;
  readonly withheld: Withheld | undefined;
  readonly ending: WireEnding | undefined;
  /** Epoch ms. */
  readonly wallMs: number;
  /** Monotonic ms of the thread that had the connection. */
  readonly monotonicMs: number;
}

/** What a source exchanged last, without its secrets. */
export interface SourceFrames {
  readonly uuid: string;
  readonly name: string;
  readonly type: string;
  /** Port by which tools know the protocol; undefined: the device's own is written. */
  readonly standardPort: number | undefined;
  /** Memory that it has, which it shares with those on the same connection; 0: nothing is kept. */
  readonly bytes: number;
  readonly record: WireRecord;
  /** The latest frames in the field's words, by the number of their event, as far as the driver has them. */
  readonly words: ReadonlyMap<number, string>;
}

/** What is kept of one source, the oldest first. */
export interface WireRecord {
  readonly events: readonly WireEvent[];
  /** By number of the connection; those of the oldest events may be gone. */
  readonly peers: ReadonlyMap<number, WirePeer>;
  /** Events that were dropped for later ones. */
  readonly dropped: number;
}
