/**
 * A replay knows little of a protocol, and has it in the driver's folder: where a message ends, and which of its fields change from one request to the next
 * although the same is asked. A field that a request and its answer have by the same name is carried from the one into the other. All pure.
 */

/** Bytes of a message, `from` until before `to`. */
export interface Field {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  /** True: each end has its own, and an answer is not found by it. */
  readonly isOwn?: boolean;
}

export interface Protocol {
  /** The word for `--type`. */
  readonly type: string;
  readonly words: string;
  /** The place where its devices listen. */
  readonly ports: readonly number[];
  readonly transports: readonly ("tcp" | "udp")[];
  /** Bytes of the message that these begin with; undefined: that is not known yet; null: they begin none. Absent: what one end sends until the other does. */
  readonly lengthOf?: (bytes: Buffer) => number | undefined | null;
  /** True: these may be the first bytes of a client. */
  readonly isFirst: (bytes: Buffer) => boolean;
  /** Fields that change by themselves, in their order in the message. */
  readonly fieldsOf: (message: Buffer, isFromDevice: boolean) => readonly Field[];
  /** Why a recording of it cannot be served, unless it tells a memory. */
  readonly refusal?: string;
  /** How its reads are a memory. Absent: only requests of the recording are answered. */
  readonly memory?: MemoryForm;
}

/** Bits of a device that lie one after the other: the lowest bit of the first byte, which has the index `from` in its area, comes first. */
export interface Bits {
  /** Name of what its indices count in; another one for each unit, block or tag. */
  readonly area: string;
  readonly from: number;
  readonly count: number;
  /** At least `count` bits. */
  readonly bytes: Buffer;
}

/** A device's memory at one moment of the recording. */
export interface MemoryView {
  /** Bits as `Bits` has them. Undefined: at least one was not captured. */
  bits(area: string, from: number, count: number): Buffer | undefined;
  /** All bits of an area, which are read from index 0 on, and may be more or fewer each time. Undefined: they were not captured. */
  whole(area: string): Buffer | undefined;
  /** True: something of the area was captured. */
  has(area: string): boolean;
}

/** An answer that the recording has not, made of what it tells. */
export interface MadeAnswer {
  /** The answer; the fields that `fieldsOf` names are filled in later. */
  readonly message: Buffer;
  /** True: the request, or a part of it, is refused as the protocol refuses it. */
  readonly isRefusal: boolean;
}

/** Reads as a memory. Both are pure, and take any bytes. */
export interface MemoryForm {
  /** Bits that an answered request tells; empty: it reads nothing, or was refused. */
  readonly told: (request: Buffer, answer: Buffer) => readonly Bits[];
  /** The answer to a request, good or a refusal. Undefined: no answer of this protocol fits. */
  readonly answer: (request: Buffer, view: MemoryView) => MadeAnswer | undefined;
}

/** No message of these protocols is longer. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;

export const field = (name: string, from: number, bytes: number): Field => ({ name, from, to: from + bytes });
export const noFields = (): readonly Field[] => [];

/** The length of messages that say it in two bytes, without `plus` bytes that are not counted in it. */
export const sized =
  (at: number, plus: number, { isLittle = false, begins }: { isLittle?: boolean; begins: (bytes: Buffer) => boolean }) =>
  (bytes: Buffer): number | undefined | null => {
    if (bytes.length < at + 2) return undefined;
    return begins(bytes) ? plus + (isLittle ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at)) : null;
  };

/** TPKT (RFC 1006): version 3, and the length of the packet with its header. */
export const tpktLength = sized(2, 0, { begins: (bytes) => bytes[0] === 3 && bytes[1] === 0 && bytes.readUInt16BE(2) >= 7 });
export const isTpkt = (bytes: Buffer): boolean => typeof tpktLength(bytes) === "number";
