import type { End } from "./address.ts";

/**
 * The contract between the verbs that read captures (`collector replay`, `collector profile replay`) and the workbench's own package. The
 * collector writes captures and reads none: it loads the workbench where it is installed. A failure crosses as data, because each package has
 * error classes of its own.
 */

/** The talk of two ends over one transport. */
export interface Conversation {
  /** Counts from 1 in the order of the capture. */
  readonly id: number;
  readonly transport: "tcp" | "udp";
  /** The end that opened it; where that was not captured, the one that sent first. */
  readonly first: End;
  readonly second: End;
  /** True: the capture has the packets that opened it. */
  readonly isOpeningSeen: boolean;
}

/** Bytes of one end, in the order in which it sent them; of UDP one datagram. */
export interface Piece {
  readonly conversation: Conversation;
  readonly isFromFirst: boolean;
  readonly bytes: Buffer;
  /** Bytes of the same end before these that the capture has not. */
  readonly lostBytes: number;
}

/**
 * Why nothing of a packet is read. `link`: a type of link that is not known here; `fragment`: a part of an IP packet, which is put together
 * nowhere here; `cut`: the capture has less of it than its headers; `damaged`: headers that cannot be; `other`: neither TCP nor UDP over IP.
 */
export type Unread = "link" | "fragment" | "cut" | "damaged" | "other";

/** Contents of a capture, and the part of them that could not be read. */
export interface CaptureFacts {
  readonly bytes: number;
  readonly packets: number;
  readonly conversations: number;
  /** Packets that nothing was read of, by why. */
  readonly unread: Readonly<Record<Unread, number>>;
  /** Bytes of conversations that the capture has not. */
  readonly lostBytes: number;
  /** True: the file ends within a packet. */
  readonly isCut: boolean;
  /** Packets that somebody or some program commented on, and the first different comments. */
  readonly commented: number;
  readonly comments: readonly string[];
}

/** A file, or bytes as they come. */
export type CaptureSource = string | AsyncIterable<Buffer>;

export interface ReadingOptions {
  readonly signal?: AbortSignal;
  /** `totalBytes`: length of the file, where it is known. */
  readonly onProgress?: (doneBytes: number, totalBytes: number | undefined) => void;
}

/** A capture could not be read; a sentence for people, with the name of the file. */
export interface CaptureProblem {
  readonly problem: string;
}

export interface CaptureRead {
  readonly facts: CaptureFacts;
  /** Sentences about what was not read; empty: all of it was. */
  readonly notes: readonly string[];
}

/** The device that a person means; absent parts: any. */
export interface RecordingWish {
  readonly address?: string;
  readonly port?: number;
  readonly transport?: "tcp" | "udp";
  /** One of `replayTypes`. */
  readonly type?: string;
}

/** Counts of one recorded device. */
export interface RecordingCounts {
  connections: number;
  requests: number;
  answers: number;
  /** Messages of the device that answer no request of the capture. */
  unpaired: number;
  /** Bytes that are not a whole message. */
  strayBytes: number;
}

/** A request of a client that the recording has not. */
export interface UnknownRequest {
  readonly request: Buffer;
  /** Bytes in common with requests that ask the same. */
  readonly essence: Buffer;
  /** The request of the recording that differs least; undefined: the recording has none. */
  readonly nearest: Buffer | undefined;
}

/** Counts of a replay since its start. */
export interface ReplayCounts {
  connections: number;
  /** Connections above those that are served at once. */
  refused: number;
  requests: number;
  answered: number;
  /** Answered requests that were matched by their place in the recording alone. */
  byPlace: number;
  /** Answered requests that are not in the recording: their answers are made of what it reads. */
  fromMemory: number;
  /** Requests that had no answer in the recording either. */
  silent: number;
  unknown: number;
  /** Connections that were ended, since what came was no message, or the client left the answers unread. */
  ended: number;
}

export interface ServeOptions {
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  readonly onUnknown: (unknown: UnknownRequest) => void;
}

/** Counts of what a recording reads, where any range of it is served. */
export interface MemoryFacts {
  /** Different ranges that were read. */
  readonly ranges: number;
  /** Ranges of answers for which there was no room. */
  readonly leftOut: number;
}

/** A recorded device that listens. */
export interface RunningReplay {
  readonly port: number;
  /** Undefined: of this protocol only requests of the recording are answered. */
  readonly memory: MemoryFacts | undefined;
  readonly counts: Readonly<ReplayCounts>;
  close(): Promise<void>;
}

/** A device of a recording over one transport. */
export interface ReplayableDevice {
  readonly end: End;
  readonly transport: "tcp" | "udp";
  /** Type of data source, `bytes` where the protocol is not known. */
  readonly type: string;
  /** Name of the protocol for people. */
  readonly protocol: string;
  /** Why it cannot be served; undefined: it can. */
  readonly refusal: string | undefined;
  readonly counts: Readonly<RecordingCounts>;
  readonly differentRequests: number;
  /** Listens and answers; connects to nothing. Throws what listening fails with. */
  serve(options: ServeOptions): Promise<RunningReplay>;
}

export interface RecordingRead extends CaptureRead {
  /** In the order of the capture. */
  readonly devices: readonly ReplayableDevice[];
  /** Answers for which there was no room. */
  readonly notKept: number;
}

/** The export `workbench` of the workbench's module. */
export interface Workbench {
  /** The package's version, equal to the collector's. */
  readonly version: string;
  /** Types that a person may name for a recorded device. */
  readonly replayTypes: readonly string[];
  /** Reads a capture in bounded memory; `onPieces` gets the bytes that are in order. Throws what the signal aborts with, and what `onPieces` throws. */
  readCapture(
    source: CaptureSource,
    onPieces: (pieces: readonly Piece[]) => void,
    options?: ReadingOptions,
  ): Promise<CaptureRead | CaptureProblem>;
  /** Reads the devices of a capture. Throws what the signal aborts with. */
  readRecording(source: CaptureSource, wish: RecordingWish, options?: ReadingOptions): Promise<RecordingRead | CaptureProblem>;
}
