import { formatBytes } from "../../base/bytes.ts";
import { countOf } from "../../base/number.ts";
import type { Log } from "../../model/context.ts";
import type { Layout, LayoutVariable } from "../../model/layout.ts";
import type { Reading, Value } from "../../model/value.ts";
import { type Warning, warning } from "../../model/warning.ts";
import { LIMITS } from "./limits.ts";

/** Of an element that is no text: bytes at most (OPC 10000-6, 5.2.2). */
const ELEMENT_BYTES = 8;
/** Of a text: its length. */
const LENGTH_BYTES = 4;
/** UTF-8 of one UTF-16 unit. */
const MOST_UTF8_BYTES = 3;

/** Values that no answer of the server has room for. */
export class TooLargeValues {
  readonly #maxAnswerBytes: number;
  readonly #log: Log;
  /** By uuid of the variable. */
  readonly #known = new Map<string, { readonly name: string; readonly bytes: number }>();

  constructor(maxAnswerBytes: number, log: Log) {
    this.#maxAnswerBytes = maxAnswerBytes;
    this.#log = log;
  }

  /** Bytes of the value where it is too large. */
  look({ source }: Layout, { uuid, name }: LayoutVariable, reading: Reading): number | undefined {
    const maxBytes = this.#maxAnswerBytes - LIMITS.answerOverhead;
    const bytes = reading.quality === "bad" ? 0 : bytesOf(reading.value, maxBytes);
    if (bytes <= maxBytes) {
      if (this.#known.size > 0) this.#known.delete(uuid);
      return undefined;
    }
    const isNew = !this.#known.has(uuid);
    this.#known.set(uuid, { name: `${name} of ${source.name}`, bytes });
    if (isNew)
      this.#log.warn({ source: source.name, variable: name, bytes, maxBytes }, "a value is too large for an answer of the OPC UA server");
    return bytes;
  }

  forget(uuid: string): void {
    this.#known.delete(uuid);
  }

  warnings(): readonly Warning[] {
    const [largest] = [...this.#known.values()].sort((one, other) => other.bytes - one.bytes);
    if (!largest) return [];
    const more = this.#known.size === 1 ? "" : ` (and ${countOf(this.#known.size - 1, "more variable")})`;
    return [
      warning(
        "value_too_large",
        `${largest.name}${more} is ${formatBytes(largest.bytes)}, and an answer to a client at most ${formatBytes(this.#maxAnswerBytes)}: it is shown as BadEncodingLimitsExceeded; max_answer of the sink raises it`,
      ),
    ];
  }
}

/** Exact from `enoughBytes` on. */
function bytesOf(value: Value, enoughBytes: number): number {
  if (typeof value === "string") return textBytes(value, enoughBytes);
  if (typeof value !== "object") return ELEMENT_BYTES;
  if (typeof value[0] !== "string") return LENGTH_BYTES + value.length * ELEMENT_BYTES;
  let bytes = LENGTH_BYTES;
  for (const element of value) bytes += typeof element === "string" ? LENGTH_BYTES + Buffer.byteLength(element) : ELEMENT_BYTES;
  return bytes;
}

const textBytes = (text: string, enoughBytes: number): number =>
  LENGTH_BYTES + (text.length * MOST_UTF8_BYTES <= enoughBytes ? text.length : Buffer.byteLength(text));
