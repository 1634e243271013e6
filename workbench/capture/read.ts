import { createReadStream, statSync } from "node:fs";
import { errorCode } from "../../src/model/failure.ts";
import type { CaptureFacts, Piece, ReadingOptions, Unread } from "../../src/model/workbench.ts";
import { contentOf, UNREAD } from "./network.ts";
import { CaptureError, PacketParser } from "./packets.ts";
import { Streams } from "./streams.ts";

const MAX_COMMENTS = 10;
const MAX_COMMENT_CHARACTERS = 200;
/** At once from the disk: how much of the file is in memory. */
const CHUNK_BYTES = 1024 * 1024;

/** Reads a capture in pieces, in bounded memory. */
export class CaptureReader {
  readonly #parser = new PacketParser();
  readonly #streams = new Streams();
  readonly #unread = Object.fromEntries(UNREAD.map((why) => [why, 0])) as Record<Unread, number>;
  readonly #comments = new Set<string>();
  #commented = 0;
  #bytes = 0;
  #packets = 0;
  #isCut = false;

  /** What is in order by now. Throws CaptureError. */
  push(chunk: Buffer): readonly Piece[] {
    this.#bytes += chunk.length;
    for (const packet of this.#parser.push(chunk)) {
      this.#packets++;
      if (packet.comment !== undefined) this.#note(packet.comment);
      const content = contentOf(packet);
      if (typeof content === "string") this.#unread[content]++;
      else if (content.kind === "udp") this.#streams.addDatagram(content);
      else this.#streams.addSegment(content);
    }
    return this.#streams.take();
  }

  /** What still waited for packets that are not there. Throws CaptureError where the file is no capture. */
  end(): readonly Piece[] {
    this.#isCut = this.#parser.end() > 0;
    this.#streams.end();
    return this.#streams.take();
  }

  get facts(): CaptureFacts {
    return {
      bytes: this.#bytes,
      packets: this.#packets,
      conversations: this.#streams.conversations,
      unread: { ...this.#unread },
      lostBytes: this.#streams.lostBytes,
      isCut: this.#isCut,
      commented: this.#commented,
      comments: [...this.#comments],
    };
  }

  #note(comment: string): void {
    this.#commented++;
    if (this.#comments.size < MAX_COMMENTS) this.#comments.add(comment.slice(0, MAX_COMMENT_CHARACTERS));
  }
}

/**
 * Reads a capture from a file, or from a stream. `onPieces` gets what is in order, as it is read; `onProgress` how far it has come, with the
 * length of the file where that is known. Throws CaptureError with a sentence that names the file; what the signal aborts with.
 */
export async function readCapture(
  source: string | AsyncIterable<Buffer>,
  onPieces: (pieces: readonly Piece[]) => void,
  { signal, onProgress = () => {} }: ReadingOptions = {},
): Promise<CaptureFacts> {
  const name = typeof source === "string" ? source : "the capture on stdin";
  const reader = new CaptureReader();
  try {
    const { chunks, totalBytes } = opened(source);
    for await (const chunk of chunks) {
      signal?.throwIfAborted();
      onPieces(reader.push(chunk));
      onProgress(reader.facts.bytes, totalBytes);
    }
    onPieces(reader.end());
  } catch (error) {
    if (error instanceof CaptureError) throw new CaptureError(`${name}: ${error.message}`, { cause: error });
    const code = errorCode(error);
    if (code === undefined || code === "" || signal?.aborted) throw error;
    throw new CaptureError(code === "ENOENT" ? `${name} does not exist` : `${name} cannot be read (${code})`, { cause: error });
  }
  return reader.facts;
}

function opened(source: string | AsyncIterable<Buffer>): { readonly chunks: AsyncIterable<Buffer>; readonly totalBytes?: number } {
  if (typeof source !== "string") return { chunks: source };
  const stat = statSync(source);
  // A pipe or a device that stands where a file should be would be waited for.
  if (!stat.isFile()) throw new CaptureError("it is not a plain file; a capture comes from a file, or from stdin as -");
  return { chunks: createReadStream(source, { highWaterMark: CHUNK_BYTES }), totalBytes: stat.size };
}

const UNREAD_WORDS: Readonly<Record<Unread, string>> = {
  link: "of a type of link that is not known here (capture on one Ethernet interface, or with tcpdump -i any)",
  fragment: "are fragments of IP packets, which are not put together: what they carried is missing",
  cut: "are shorter than their headers (capture whole packets, tcpdump -s 0)",
  damaged: "have headers that cannot be",
  other: "are neither TCP nor UDP",
};

/** What a person has to know of how much of a capture was read; empty: all of it. Pure. */
export function factsWords({ unread, lostBytes, isCut, commented, comments }: CaptureFacts): readonly string[] {
  const reasons = UNREAD.filter((why) => why !== "other" && unread[why] > 0).map((why) => `${unread[why]} packets ${UNREAD_WORDS[why]}`);
  return [
    ...reasons,
    ...(lostBytes > 0 ? [`${lostBytes} bytes of conversations are not in the capture: packets are missing, or were cut`] : []),
    ...(isCut ? ["the file ends within a packet: what came before it was read"] : []),
    ...(commented > 0 ? [`${commented} packets have a comment: ${comments.join("; ")}`] : []),
  ];
}
