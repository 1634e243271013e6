import proto from "sparkplug-payload/lib/sparkplugPayloadProto.js";

/** A payload as the decoder of Eclipse Tahu reads it. Absent fields are not there; 64-bit numbers are bigint, of times and the like number. */
export interface DecodedPayload {
  readonly timestamp?: number;
  readonly seq?: number;
  readonly metrics: readonly DecodedMetric[];
}

export interface DecodedMetric {
  readonly name?: string;
  readonly alias?: number;
  readonly timestamp?: number;
  readonly datatype?: number;
  readonly isHistorical?: boolean;
  readonly isNull?: boolean;
  /** By key: type and value. */
  readonly properties?: Readonly<Record<string, { readonly type: number; readonly value: unknown }>>;
  /** The one field of a value that is set. */
  readonly field?: string;
  readonly value?: unknown;
}

type Raw = Readonly<Record<string, unknown>>;

const { Payload } = proto.org.eclipse.tahu.protobuf;

const VALUES = ["intValue", "longValue", "floatValue", "doubleValue", "booleanValue", "stringValue", "bytesValue"] as const;

/** Decodes what the collector sends. Throws where it is no payload of Sparkplug B. */
export function decoded(bytes: Uint8Array): DecodedPayload {
  const raw = Payload.toObject(Payload.decode(bytes), { longs: String, bytes: Buffer }) as Raw;
  return {
    ...numbersOf(raw, "timestamp", "seq"),
    metrics: ((raw["metrics"] ?? []) as readonly Raw[]).map(metricOf),
  };
}

/** An encoded payload, as another program makes it. */
export const encoded = (payload: Raw): Buffer => Buffer.from(Payload.encode(Payload.fromObject(payload)).finish());

function metricOf(raw: Raw): DecodedMetric {
  const set = raw["properties"] as { readonly keys?: readonly string[]; readonly values?: readonly Raw[] } | undefined;
  if (set && set.keys?.length !== set.values?.length) throw new Error("keys and values of a PropertySet differ in number");
  const properties = set?.keys?.map((key, i) => [key, propertyOf(set.values?.[i] ?? {})] as const);
  const fields = VALUES.filter((field) => raw[field] !== undefined);
  if (fields.length > 1) throw new Error(`a metric has two values: ${fields}`);
  const [field] = fields;
  const { name, datatype, isHistorical, isNull } = raw as DecodedMetric;
  return {
    ...(name !== undefined && { name }),
    ...numbersOf(raw, "alias", "timestamp"),
    ...(datatype !== undefined && { datatype }),
    ...(isHistorical !== undefined && { isHistorical }),
    ...(isNull !== undefined && { isNull }),
    ...(properties && { properties: Object.fromEntries(properties) }),
    ...(field !== undefined && { field, value: field === "longValue" ? BigInt(raw[field] as string) : raw[field] }),
  };
}

function propertyOf(raw: Raw): { readonly type: number; readonly value: unknown } {
  const field = VALUES.find((one) => raw[one] !== undefined);
  return { type: raw["type"] as number, value: field && raw[field] };
}

function numbersOf<K extends string>(raw: Raw, ...keys: readonly K[]): Partial<Record<K, number>> {
  const found = keys.filter((key) => raw[key] !== undefined).map((key) => [key, Number(raw[key])]);
  return Object.fromEntries(found) as Partial<Record<K, number>>;
}

/** The value of a decoded metric, by its data type (Sparkplug 3.0, 6.4.17), as the collector has it. */
export function valueIn(datatype: number, { field, value }: DecodedMetric): unknown {
  const bits = { 1: 8, 2: 16, 3: 32 }[datatype];
  if (bits !== undefined) return Number(BigInt.asIntN(32, BigInt(value as number)));
  if (datatype === 4) return BigInt.asIntN(64, value as bigint);
  if (datatype === 7) return Number(value);
  if (field !== "bytesValue") return value;
  return elementsOf(datatype, value as Buffer);
}

function elementsOf(datatype: number, bytes: Buffer): unknown {
  if (datatype === 33) return bytes.toString().split("\0").slice(0, -1);
  if (datatype === 32)
    return Array.from({ length: bytes.readUInt32LE(0) }, (_, i) => ((bytes[4 + Math.floor(i / 8)] ?? 0) & (1 << (7 - (i % 8)))) !== 0);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const readers: Readonly<Record<number, readonly [number, (at: number) => unknown]>> = {
    22: [1, (at) => view.getInt8(at)],
    23: [2, (at) => view.getInt16(at, true)],
    24: [4, (at) => view.getInt32(at, true)],
    25: [8, (at) => view.getBigInt64(at, true)],
    26: [1, (at) => view.getUint8(at)],
    27: [2, (at) => view.getUint16(at, true)],
    28: [4, (at) => view.getUint32(at, true)],
    29: [8, (at) => view.getBigUint64(at, true)],
    30: [4, (at) => view.getFloat32(at, true)],
    31: [8, (at) => view.getFloat64(at, true)],
  };
  const [size, read] = readers[datatype] ?? [1, () => undefined];
  return Array.from({ length: bytes.length / size }, (_, i) => read(i * size));
}
