import type { ChecksumOf, FramingOf } from "../../src/model/profile.ts";
import { ANY, type PlaceholderFormat, parseBytes, parseTemplate, renderValue } from "../../src/model/profile-template.ts";
import { checksumBytes, isChecksumOf, writtenChecksum } from "./checksum.ts";

/** A checksum with everything about it decided. */
interface PlacedChecksum {
  readonly of: ChecksumOf;
  readonly bytes: number;
  readonly isBehindEnd: boolean;
  readonly coversStart: boolean;
  readonly coversEnd: boolean;
}

interface Common {
  readonly maxBytes: number;
  readonly checksum: PlacedChecksum | undefined;
  /** True: requests have the frame of answers. */
  readonly isForRequests: boolean;
  /** True: bytes before a start are skipped. */
  readonly skips: boolean;
}

/** What a frame is, ready for use. */
export type Framing = Common &
  (
    | { readonly type: "delimiter"; readonly start: Buffer; readonly end: Buffer }
    | { readonly type: "fixed"; readonly start: Buffer; readonly bytes: number }
    | {
        readonly type: "length";
        /** ANY where the length is, too. */
        readonly header: readonly number[];
        readonly lengthAt: number;
        readonly lengthBytes: number;
        readonly format: PlaceholderFormat;
        readonly counts: "payload" | "rest" | "frame";
      }
    | {
        readonly type: "control";
        readonly start: Buffer;
        readonly end: Buffer;
        readonly escapeByte: number | undefined;
        readonly escapeXor: number;
        readonly alone: ReadonlySet<number>;
      }
  );

/** What the bytes at a place are: a frame, or bytes before the next one. */
export interface Found {
  readonly kind: "frame" | "noise";
  readonly length: number;
}

const NOTHING = Buffer.alloc(0);
const bytesOf = (text: string | undefined): Buffer => {
  const parsed = text === undefined ? [] : parseBytes(text);
  if (typeof parsed === "string") throw new TypeError(parsed);
  return Buffer.from(parsed);
};

/** The framing of a profile that was checked. X3.28 is control characters without escape. Pure. */
export function framingOf(framing: FramingOf, resync: "close" | "start"): Framing {
  const skips = resync === "start";
  if (framing.type === "x328") {
    const kind = framing.checksum;
    return framingOf(
      {
        type: "control",
        start: "<STX>",
        end: "<ETX>",
        escape_xor: 0,
        alone: "<EOT><NAK><ACK>",
        max_bytes: framing.max_bytes,
        requests: "raw",
        ...(kind !== "none" && { checksum: { kind, written: "be" } }),
      },
      resync,
    );
  }
  const isControl = framing.type === "control";
  const { checksum } = framing;
  const common: Common = {
    maxBytes: framing.type === "fixed" ? framing.bytes : framing.max_bytes,
    isForRequests: framing.requests === "framed",
    skips,
    checksum: checksum && {
      of: checksum,
      bytes: checksumBytes(checksum),
      isBehindEnd: (checksum.at ?? (isControl ? "after_end" : "before_end")) === "after_end",
      coversStart: checksum.covers_start ?? !isControl,
      coversEnd: checksum.covers_end ?? true,
    },
  };
  switch (framing.type) {
    case "delimiter":
      return { ...common, type: "delimiter", start: bytesOf(framing.start), end: bytesOf(framing.end) };
    case "fixed":
      return { ...common, type: "fixed", start: bytesOf(framing.start), bytes: framing.bytes };
    case "control": {
      const { start, end, escape_xor: escapeXor, alone } = framing;
      const [escapeByte] = bytesOf(framing.escape);
      return {
        ...common,
        type: "control",
        start: bytesOf(start),
        end: bytesOf(end),
        escapeByte,
        escapeXor,
        alone: new Set(bytesOf(alone)),
      };
    }
    case "length":
      return { ...common, type: "length", counts: framing.counts, ...headerOf(framing.header) };
  }
}

function headerOf(text: string): Pick<Extract<Framing, { type: "length" }>, "header" | "lengthAt" | "lengthBytes" | "format"> {
  const template = parseTemplate(text, { canBeAny: true });
  if (typeof template === "string") throw new TypeError(template);
  const header: number[] = [];
  let [lengthAt, lengthBytes] = [0, 0];
  let format: PlaceholderFormat | undefined;
  for (const part of template) {
    if ("bytes" in part) header.push(...part.bytes);
    else {
      format = part.format;
      lengthAt = header.length;
      lengthBytes = format.kind === "binary" ? format.bytes : (format.width ?? 0);
      header.push(...new Array<number>(lengthBytes).fill(ANY));
    }
  }
  if (!format) throw new TypeError("a header without a length");
  return { header, lengthAt, lengthBytes, format };
}

const broken = (what: string, bytes: Buffer, start: number): string =>
  `${what}: ${bytes.toString("hex", start, Math.min(bytes.length, start + 16))}`;
const tooLong = (maxBytes: number): string => `a frame of more than ${maxBytes} bytes`;

/**
 * The frame, or the bytes to skip, that begin at `start`; undefined: more bytes are needed; a text: this is neither, and why. Never longer than
 * `maxBytes`. Pure.
 */
export function nextFrame(framing: Framing, bytes: Buffer, start: number): Found | undefined | string {
  if (framing.type === "length") return nextByLength(framing, bytes, start);
  if (framing.type === "control" && framing.alone.has(bytes[start] ?? -1)) return { kind: "frame", length: 1 };
  const begins = beginsWith(bytes, start, framing.start);
  if (begins === false) return noiseAt(framing, bytes, start);
  if (begins === undefined) return undefined;
  if (framing.type === "fixed") return { kind: "frame", length: framing.bytes };
  const from = start + framing.start.length;
  const end = framing.type === "delimiter" ? bytes.indexOf(framing.end, from) : controlEnd(framing, bytes, from);
  const behind = framing.checksum?.isBehindEnd ? framing.checksum.bytes : 0;
  const length = end < 0 ? undefined : end + framing.end.length + behind - start;
  if ((length ?? bytes.length - start) > framing.maxBytes)
    return framing.skips ? skipped(framing, bytes, start) : tooLong(framing.maxBytes);
  return length === undefined ? undefined : { kind: "frame", length };
}

/** True, false, or undefined where so many bytes have not come. */
function beginsWith(bytes: Buffer, start: number, first: Buffer): boolean | undefined {
  for (let i = 0; i < first.length; i++) {
    const byte = bytes[start + i];
    if (byte === undefined) return undefined;
    if (byte !== first[i]) return false;
  }
  return true;
}

type WithStart = Exclude<Framing, { type: "length" }>;

function noiseAt(framing: WithStart, bytes: Buffer, start: number): Found | string {
  return framing.skips && framing.start.length > 0 ? skipped(framing, bytes, start) : broken("bytes that begin no frame", bytes, start);
}

/** Up to the next byte that could begin a frame, or all there are. */
function skipped(framing: WithStart, bytes: Buffer, start: number): Found {
  const first = framing.start[0] ?? 0;
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== first && !(framing.type === "control" && framing.alone.has(bytes[at] ?? -1))) at++;
  return { kind: "noise", length: at - start };
}

/** The place where the end begins; -1: not yet. An end behind an escape character is none, unless the end begins with that character. */
function controlEnd({ end, escapeByte }: Extract<Framing, { type: "control" }>, bytes: Buffer, from: number): number {
  if (escapeByte === undefined) return bytes.indexOf(end, from);
  for (let at = from; at < bytes.length; at++) {
    const isEnd = beginsWith(bytes, at, end);
    if (isEnd === true) return at;
    if (isEnd === undefined) return -1;
    if (bytes[at] === escapeByte) at++;
  }
  return -1;
}

function nextByLength(framing: Extract<Framing, { type: "length" }>, bytes: Buffer, start: number): Found | undefined | string {
  const { header, lengthAt, lengthBytes, format, counts, maxBytes, checksum } = framing;
  for (const [i, byte] of header.entries()) {
    const there = bytes[start + i];
    if (there === undefined) return undefined;
    if (byte !== ANY && there !== byte) return broken("bytes that begin no frame", bytes, start);
  }
  const said = numberIn(bytes.subarray(start + lengthAt, start + lengthAt + lengthBytes), format);
  if (said === undefined) return broken("a header without a length", bytes, start);
  const sum = checksum?.bytes ?? 0;
  const length = { payload: header.length + said + sum, rest: header.length + said, frame: said }[counts];
  if (length < header.length + sum) return `a frame that says it has ${length} bytes, fewer than its header`;
  return length > maxBytes ? tooLong(maxBytes) : { kind: "frame", length };
}

function numberIn(bytes: Buffer, format: PlaceholderFormat): number | undefined {
  if (format.kind === "binary") return format.isBigEndian ? bytes.readUIntBE(0, format.bytes) : bytes.readUIntLE(0, format.bytes);
  const text = bytes.toString("latin1");
  if (!(format.kind === "decimal" ? /^\d+$/ : /^[0-9a-fA-F]+$/).test(text)) return undefined;
  return Number.parseInt(text, format.kind === "decimal" ? 10 : 16);
}

/** What a whole frame holds between start and end, without escapes and checksum; a text: it is damaged. Pure. */
export function payloadOf(framing: Framing, frame: Buffer): Buffer | string {
  if (framing.type === "control" && frame.length === 1) return frame;
  const { head, tail } = edgesOf(framing);
  const { checksum } = framing;
  const sumBytes = checksum?.bytes ?? 0;
  const behind = checksum?.isBehindEnd ? sumBytes : 0;
  const inner = frame.subarray(head, frame.length - tail - behind);
  const content = framing.type === "control" ? unescaped(framing, inner) : inner;
  if (!checksum) return content;
  if (checksum.isBehindEnd) {
    const covered = frame.subarray(checksum.coversStart ? 0 : head, frame.length - behind - (checksum.coversEnd ? 0 : tail));
    return isChecksumOf(checksum.of, frame.subarray(frame.length - behind), covered) ? content : damaged(frame);
  }
  if (content.length < sumBytes) return damaged(frame);
  const payload = content.subarray(0, content.length - sumBytes);
  const covered = checksum.coversStart ? Buffer.concat([frame.subarray(0, head), payload]) : payload;
  return isChecksumOf(checksum.of, content.subarray(content.length - sumBytes), covered) ? payload : damaged(frame);
}

const damaged = (frame: Buffer): string => broken("a frame with a wrong checksum", frame, 0);

function edgesOf(framing: Framing): { readonly head: number; readonly tail: number } {
  if (framing.type === "length") return { head: framing.header.length, tail: 0 };
  return { head: framing.start.length, tail: framing.type === "fixed" ? 0 : framing.end.length };
}

function unescaped({ escapeByte, escapeXor }: Extract<Framing, { type: "control" }>, inner: Buffer): Buffer {
  if (escapeByte === undefined || !inner.includes(escapeByte)) return inner;
  const plain: number[] = [];
  for (let at = 0; at < inner.length; at++) {
    if (inner[at] !== escapeByte || at + 1 >= inner.length) plain.push(inner[at] ?? 0);
    else plain.push((inner[++at] ?? 0) ^ escapeXor);
  }
  return Buffer.from(plain);
}

function escaped({ start, end, escapeByte, escapeXor }: Extract<Framing, { type: "control" }>, payload: Buffer): Buffer {
  if (escapeByte === undefined) return payload;
  const special = new Set([escapeByte, start[0], end[0]]);
  return Buffer.from([...payload].flatMap((byte) => (special.has(byte) ? [escapeByte, byte ^ escapeXor] : [byte])));
}

/** The frame of a payload; a text: it has none, and why. Pure. */
export function frameOf(framing: Framing, payload: Buffer): Buffer | string {
  const frame = composed(framing, payload);
  if (typeof frame === "string") return frame;
  const again = payloadOf(framing, frame);
  const found = nextFrame(framing, frame, 0);
  const isWhole = typeof found === "object" && found.kind === "frame" && found.length === frame.length;
  // Such as a delimiter in the middle of it.
  if (!isWhole || typeof again === "string" || !again.equals(payload)) return `${payload.toString("hex")} cannot be in one frame`;
  return frame;
}

function composed(framing: Framing, payload: Buffer): Buffer | string {
  const { checksum } = framing;
  const start = framing.type === "length" ? headerFor(framing, payload.length) : framing.start;
  if (typeof start === "string") return start;
  const end = framing.type === "delimiter" || framing.type === "control" ? framing.end : NOTHING;
  const wire = (content: Buffer): Buffer => (framing.type === "control" ? escaped(framing, content) : content);
  if (!checksum) return Buffer.concat([start, wire(payload), end]);
  const head = checksum.coversStart ? start : NOTHING;
  if (checksum.isBehindEnd) {
    const body = Buffer.concat([wire(payload)]);
    const sum = writtenChecksum(checksum.of, Buffer.concat([head, body, checksum.coversEnd ? end : NOTHING]));
    return Buffer.concat([start, body, end, sum]);
  }
  const sum = writtenChecksum(checksum.of, Buffer.concat([head, payload]));
  return Buffer.concat([start, wire(Buffer.concat([payload, sum])), end]);
}

function headerFor(framing: Extract<Framing, { type: "length" }>, payloadBytes: number): Buffer | string {
  const { header, lengthAt, lengthBytes, format, counts, checksum } = framing;
  const rest = payloadBytes + (checksum?.bytes ?? 0);
  const length = renderValue({ payload: payloadBytes, rest, frame: header.length + rest }[counts], format);
  if (typeof length === "string") return length;
  const bytes = Buffer.from(header.map((byte) => (byte === ANY ? 0 : byte)));
  bytes.set(length.slice(0, lengthBytes), lengthAt);
  return bytes;
}
