import { captureFileName } from "../../lib/capture/file-name.ts";
import { CaptureWriter } from "../../lib/capture/write.ts";
import type { SourceFrames, WireEvent, Withheld } from "../../model/wire.ts";
import { type DataAnswer, jsonAnswer } from "./data-answer.ts";
import type { FramesAnswer } from "./told.ts";

/** The latest frames that are shown; the capture has all. */
const MAX_SHOWN = 200;
/** Bytes of a frame that are shown. */
const MAX_BYTES = 256;

const WITHHELD: Readonly<Record<Withheld, string>> = {
  log_in: "a log-in, which is not kept",
  tls: "TLS, which is encrypted",
  encrypted: "encrypted by the protocol",
  secret: "holds a secret of the source, and is not kept",
};
const ENDINGS: Readonly<Record<NonNullable<WireEvent["ending"]>, string>> = {
  fin_out: "the collector ended the connection",
  fin_in: "the device ended the connection",
  reset_in: "the device reset the connection",
  refused: "the device answered that nothing listens on this port",
  unanswered: "the device did not answer the connection",
};

/** The last exchange of a source in words, the oldest first. */
export function framesAnswer({ name, type, record, words }: SourceFrames): DataAnswer {
  const shown = record.events.slice(-MAX_SHOWN);
  return jsonAnswer(200, {
    source: name,
    type,
    peers: [...record.peers].map(([connection, peer]) => ({ connection, ...peer })),
    left_out: record.dropped + record.events.length - shown.length,
    frames: shown.map(({ number, wallMs, connection, kind, direction, length, bytes, withheld, ending }) => ({
      at: new Date(wallMs).toISOString(),
      connection,
      kind,
      from: kind === "data" ? (direction === "out" ? "collector" : "device") : null,
      length: kind === "data" ? length : null,
      bytes: kind === "data" && !withheld ? Buffer.from(bytes.subarray(0, MAX_BYTES)).toString("hex") : null,
      words: wordsOf({ kind, direction, length, withheld, ending }, words.get(number)),
    })),
  } satisfies FramesAnswer);
}

/** A file for Wireshark of all that is kept. */
export function captureAnswer({ name, type, standardPort, record }: SourceFrames, version: string): DataAnswer {
  const writer = new CaptureWriter({ version, source: name, type, standardPort });
  const parts = [writer.head(), ...record.events.map((event) => writer.take(event, record.peers.get(event.connection)))];
  const fileName = captureFileName(name, Date.now());
  return { status: 200, contentType: "application/x-pcapng", body: Buffer.concat(parts), fileName };
}

function wordsOf(
  { kind, direction, length, withheld, ending }: Pick<WireEvent, "kind" | "direction" | "length" | "withheld" | "ending">,
  inWords: string | undefined,
): string {
  if (kind === "opening") return "the connection is being opened";
  if (kind === "opened") return "the connection is open";
  if (kind === "ended") return ending === undefined ? "the connection ended" : ENDINGS[ending];
  const who = direction === "out" ? "the collector sent" : "the device answered";
  const more = withheld ? WITHHELD[withheld] : inWords;
  return `${who} ${length} bytes${more === undefined ? "" : `: ${more}`}`;
}
