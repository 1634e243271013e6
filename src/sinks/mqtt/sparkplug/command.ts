import { Buffer } from "node:buffer";

/** One metric of a command (NCMD, DCMD), as far as the collector looks at it. */
export interface CommandMetric {
  /** At most MAX_NAME_BYTES of it. */
  readonly name: string | undefined;
  readonly alias: number | undefined;
  /** Undefined: it has no value that is a boolean. */
  readonly boolean: boolean | undefined;
}

/** Metrics of one command that are looked at; the rest is counted. */
const MAX_METRICS = 1000;
const MAX_NAME_BYTES = 256;
/** Bytes of a varint, at most. */
const MAX_VARINT_BYTES = 10;

const PAYLOAD_METRICS = 2;
const METRIC = { name: 1, alias: 2, boolean: 14 } as const;

/** A command as it came. `more`: metrics beyond those. */
export interface Command {
  readonly metrics: readonly CommandMetric[];
  readonly more: number;
}

/** One field of a message; `number` of a varint, `bytes` of a field with a length. */
interface Field {
  readonly field: number;
  readonly number: number | undefined;
  readonly bytes: Uint8Array | undefined;
}

/** Bytes that are not a message of Protocol Buffers. */
class MalformedError extends Error {}

/**
 * Reads a command from outside. Undefined: it is not a payload of Sparkplug B. Takes time and memory in proportion to the bytes, which are not
 * kept; fields that are not known are skipped. Pure, never throws.
 */
export function readCommand(bytes: Uint8Array): Command | undefined {
  try {
    const metrics: CommandMetric[] = [];
    let more = 0;
    for (const { field, bytes: body } of fieldsOf(bytes)) {
      if (field !== PAYLOAD_METRICS) continue;
      if (!body) return undefined;
      const metric = metricOf(body);
      if (metrics.length < MAX_METRICS) metrics.push(metric);
      else more++;
    }
    return { metrics, more };
  } catch (error) {
    if (error instanceof MalformedError) return undefined;
    throw error;
  }
}

function metricOf(body: Uint8Array): CommandMetric {
  let name: string | undefined;
  let alias: number | undefined;
  let boolean: boolean | undefined;
  for (const { field, number, bytes } of fieldsOf(body)) {
    if (field === METRIC.name && bytes) name = Buffer.from(bytes.subarray(0, MAX_NAME_BYTES)).toString();
    else if (field === METRIC.alias) alias = number;
    else if (field === METRIC.boolean && number !== undefined) boolean = number !== 0;
  }
  return { name, alias, boolean };
}

/** Throws MalformedError. */
function* fieldsOf(bytes: Uint8Array): Generator<Field> {
  let at = 0;
  const varint = (): number => {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < MAX_VARINT_BYTES; i++) {
      const byte = bytes[at++];
      if (byte === undefined) throw new MalformedError();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw new MalformedError();
  };
  const skip = (count: number): number => {
    const from = at;
    at += count;
    if (at > bytes.length) throw new MalformedError();
    return from;
  };
  while (at < bytes.length) {
    const tag = varint();
    const field = Math.floor(tag / 8);
    if (field === 0) throw new MalformedError();
    switch (tag % 8) {
      case 0:
        yield { field, number: varint(), bytes: undefined };
        break;
      case 1:
        skip(8);
        yield { field, number: undefined, bytes: undefined };
        break;
      case 2: {
        const length = varint();
        const from = skip(length);
        yield { field, number: undefined, bytes: bytes.subarray(from, at) };
        break;
      }
      case 5:
        skip(4);
        yield { field, number: undefined, bytes: undefined };
        break;
      default:
        throw new MalformedError();
    }
  }
}
