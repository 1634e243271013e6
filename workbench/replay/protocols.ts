/**
 * What a replay knows of each protocol: where a message ends, and which of its fields change from one request to the next although the same is
 * asked. A field that a request and its answer have by the same name is carried from the one into the other. All pure.
 */

/** Bytes of a message, `from` until before `to`. */
export interface Field {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

export interface Protocol {
  /** As `--type` takes it. */
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
  /** Why a recording of it cannot be served. */
  readonly refusal?: string;
}

/** No message of these protocols is longer. */
const MAX_MESSAGE_BYTES = 1024 * 1024;

const field = (name: string, from: number, bytes: number): Field => ({ name, from, to: from + bytes });
const none = (): readonly Field[] => [];

/** Of messages that say their length in two bytes: `plus` bytes are not counted in it. */
const sized =
  (at: number, plus: number, { isLittle = false, begins }: { isLittle?: boolean; begins: (bytes: Buffer) => boolean }) =>
  (bytes: Buffer): number | undefined | null => {
    if (bytes.length < at + 2) return undefined;
    return begins(bytes) ? plus + (isLittle ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at)) : null;
  };

const modbusLength = sized(4, 6, { begins: (bytes) => bytes.readUInt16BE(2) === 0 && bytes.readUInt16BE(4) >= 2 });
const MODBUS: Protocol = {
  type: "modbus_tcp",
  words: "Modbus TCP",
  ports: [502, 802],
  transports: ["tcp"],
  lengthOf: modbusLength,
  isFirst: (bytes) => bytes.length >= 8 && modbusLength(bytes) === bytes.length && bytes.length <= 260,
  // The transaction identifier (MODBUS Messaging on TCP/IP, 3.1.3).
  fieldsOf: () => [field("transaction", 0, 2)],
};

const tpktLength = sized(2, 0, { begins: (bytes) => bytes[0] === 3 && bytes[1] === 0 && bytes.readUInt16BE(2) >= 7 });
/** COTP (ISO 8073): connection request and confirm, and data. */
const [COTP_REQUEST, COTP_CONFIRM, COTP_DATA] = [0xe0, 0xd0, 0xf0];
const isTpkt = (bytes: Buffer): boolean => typeof tpktLength(bytes) === "number";
const S7: Protocol = {
  type: "s7",
  words: "S7",
  ports: [102],
  transports: ["tcp"],
  lengthOf: tpktLength,
  isFirst: (bytes) => isTpkt(bytes) && (bytes[5] === COTP_REQUEST || (bytes[5] === COTP_DATA && bytes[7] === 0x32)),
  fieldsOf: (message) => {
    // Whoever asks for a connection numbers it; the confirmation has that number as its destination.
    if (message[5] === COTP_REQUEST && message.length >= 10) return [field("reference", 8, 2)];
    if (message[5] === COTP_CONFIRM && message.length >= 8) return [field("reference", 6, 2)];
    return message[5] === COTP_DATA && message[7] === 0x32 && message.length >= 13 ? [field("pdu", 11, 2)] : [];
  },
};
const S7PLUS: Protocol = {
  ...S7,
  type: "s7plus",
  words: "S7 by symbols (s7plus)",
  isFirst: (bytes) => isTpkt(bytes) && (bytes.includes("SIMATIC-ROOT") || (bytes[5] === COTP_DATA && bytes[7] === 0x72)),
  refusal: "each session is encrypted, or signed with numbers that it begins with",
};

/** Bytes of the header of FINS/TCP before the frame. */
const FINS_TCP_BYTES = 16;
const FRAME_SEND = 2;
/** ICF: a command, and its answer. */
const isFinsCommand = (bytes: Buffer): boolean => bytes.length >= 12 && ((bytes[0] ?? 0) & 0xc0) === 0x80 && bytes[1] === 0;
/** The service identifier, and the node that asks, to which the answer goes (W227, 5-1). */
const finsFields = (at: number, isFromDevice: boolean): readonly Field[] => [
  field("node", at + (isFromDevice ? 3 : 6), 3),
  field("service", at + 9, 1),
];
const FINS_UDP: Protocol = {
  type: "fins",
  words: "FINS over UDP",
  ports: [9600],
  transports: ["udp"],
  isFirst: isFinsCommand,
  fieldsOf: (message, isFromDevice) => (message.length >= 10 ? finsFields(0, isFromDevice) : []),
};
const FINS_TCP: Protocol = {
  type: "fins",
  words: "FINS over TCP",
  ports: [9600],
  transports: ["tcp"],
  lengthOf: (bytes) => {
    if (bytes.length < 8) return undefined;
    const length = bytes.readUInt32BE(4);
    return bytes.toString("latin1", 0, 4) === "FINS" && length >= 8 && length <= MAX_MESSAGE_BYTES ? 8 + length : null;
  },
  isFirst: (bytes) => bytes.length >= 16 && bytes.toString("latin1", 0, 4) === "FINS",
  fieldsOf: (message, isFromDevice) =>
    message.length >= FINS_TCP_BYTES + 10 && message.readUInt32BE(8) === FRAME_SEND ? finsFields(FINS_TCP_BYTES, isFromDevice) : [],
};

/** Commands of the encapsulation (CIP Vol. 2, 2-3.2). */
const CIP_COMMANDS: ReadonlySet<number> = new Set([0x04, 0x63, 0x64, 0x65, 0x66, 0x6f, 0x70]);
const [REGISTER, SEND_UNIT] = [0x65, 0x70];
const [CONNECTED_ADDRESS, CONNECTED_DATA, UNCONNECTED_DATA] = [0xa1, 0xb1, 0xb2];
const [FORWARD_OPEN, LARGE_FORWARD_OPEN, FORWARD_CLOSE, ANSWER] = [0x54, 0x5b, 0x4e, 0x80];
const cipLength = sized(2, 24, { isLittle: true, begins: (bytes) => CIP_COMMANDS.has(bytes.readUInt16LE(0)) });
const ENIP: Protocol = {
  type: "vendor_a",
  words: "EtherNet/IP",
  ports: [44_818],
  transports: ["tcp"],
  lengthOf: cipLength,
  isFirst: (bytes) => bytes.length >= 24 && cipLength(bytes) === bytes.length && bytes.readUInt32LE(8) === 0,
  fieldsOf: (message, isFromDevice) => {
    if (message.length < 24) return [];
    const command = message.readUInt16LE(0);
    // The answer to a registration gives the session: it stays as it was recorded.
    const session = command === REGISTER ? [] : [field("session", 4, 4)];
    return [...session, field("context", 12, 8), ...itemFields(message, command, isFromDevice)];
  },
};

/** In the items of a message: the numbers of a connection, and of a message in it. */
function itemFields(message: Buffer, command: number, isFromDevice: boolean): readonly Field[] {
  const fields: Field[] = [];
  const items = message.length < 32 ? 0 : message.readUInt16LE(30);
  for (let i = 0, at = 32; i < items && at + 4 <= message.length; i++) {
    const [type, bytes] = [message.readUInt16LE(at), message.readUInt16LE(at + 2)];
    const from = at + 4;
    if (from + bytes > message.length) break;
    if (type === CONNECTED_ADDRESS && bytes === 4) fields.push(field(isFromDevice ? "towards client" : "towards device", from, 4));
    if (type === CONNECTED_DATA && bytes >= 2 && command === SEND_UNIT) fields.push(field("sequence", from, 2));
    if (type === UNCONNECTED_DATA) fields.push(...connectionFields(message, from, from + bytes));
    at = from + bytes;
  }
  return fields;
}

/** Of Forward Open and Forward Close (CIP Vol. 1, 3-5.5): a client takes other numbers for each connection. */
function connectionFields(message: Buffer, from: number, to: number): readonly Field[] {
  const service = message[from] ?? 0;
  const isAnswer = (service & ANSWER) !== 0;
  const at = from + (isAnswer ? 4 : 2 + (message[from + 1] ?? 0) * 2);
  const isOpen = (service & ~ANSWER) === FORWARD_OPEN || (service & ~ANSWER) === LARGE_FORWARD_OPEN;
  const isClose = (service & ~ANSWER) === FORWARD_CLOSE;
  if (isOpen && at + (isAnswer ? 16 : 18) > to) return [];
  if (isClose && at + (isAnswer ? 8 : 10) > to) return [];
  if (isOpen && isAnswer) return [field("towards client", at + 4, 4), field("serial", at + 8, 8)];
  // How long the client waits, and the number that it gives the way back.
  if (isOpen)
    return [field("ticks", at, 2), field("towards device", at + 2, 4), field("towards client", at + 6, 4), field("serial", at + 10, 8)];
  if (isClose) return isAnswer ? [field("serial", at, 8)] : [field("ticks", at, 2), field("serial", at + 2, 8)];
  return [];
}

/** A number of a line of JSON, by its key; the first one, as the gateway protocol has it at the top. */
function jsonNumber(message: Buffer, key: string): readonly Field[] {
  const found = new RegExp(`"${key}"\\s*:\\s*(\\d+)`).exec(message.toString("latin1"));
  if (found?.[1] === undefined) return [];
  const to = found.index + found[0].length;
  return [{ name: key, from: to - found[1].length, to }];
}
const GATEWAY: Protocol = {
  type: "vendor_gateway",
  words: "the gateway protocol",
  ports: [],
  transports: ["tcp"],
  lengthOf: (bytes) => {
    if (bytes.length > 0 && bytes[0] !== 0x7b) return null;
    const end = bytes.indexOf(10);
    return end < 0 ? undefined : end + 1;
  },
  isFirst: (bytes) => /^\{.*"request"\s*:\s*"hello"/.test(bytes.toString("latin1", 0, 1000)),
  fieldsOf: (message) => [...jsonNumber(message, "id"), ...jsonNumber(message, "within_ms")].sort((a, b) => a.from - b.from),
};

const OPCUA: Protocol = {
  type: "opcua",
  words: "OPC UA",
  ports: [4840],
  transports: ["tcp"],
  isFirst: (bytes) => /^(HEL|OPN|MSG)F/.test(bytes.toString("latin1", 0, 4)),
  fieldsOf: none,
  refusal: "its secure channels number, date and sign each message; collector simulate opcua is a server to practise with",
};
const TLS: Protocol = {
  type: "tls",
  words: "TLS",
  ports: [],
  transports: ["tcp"],
  isFirst: (bytes) => bytes[0] === 0x16 && bytes[1] === 3,
  fieldsOf: none,
  refusal: "what is encrypted cannot be answered",
};

/** Of which nothing is known: the same bytes are the same request. */
const bytesOver = (transport: "tcp" | "udp"): Protocol => ({
  type: "bytes",
  words: `bytes over ${transport.toUpperCase()}`,
  ports: [],
  transports: [transport],
  isFirst: () => true,
  fieldsOf: none,
});

/** The more bytes tell a protocol, the earlier it comes. */
const KNOWN: readonly Protocol[] = [OPCUA, TLS, FINS_TCP, GATEWAY, S7PLUS, S7, ENIP, MODBUS, FINS_UDP];
/** Types of data sources that a profile reads. */
const BY_PROFILE: readonly string[] = ["odac", "vendor_b", "plastcontrol"];
export const REPLAY_TYPES: readonly string[] = [...new Set(KNOWN.map(({ type }) => type)), "bytes", ...BY_PROFILE].filter(
  (type) => type !== "tls",
);

/** Ports that devices listen on and clients do not. */
export const isDevicePort = (port: number): boolean => KNOWN.some(({ ports }) => ports.includes(port));

/** What a client speaks, by the type that a person names, by its first bytes, or by the port of the device. */
export function protocolOf(transport: "tcp" | "udp", port: number, first: Buffer, type: string | undefined): Protocol {
  const over = KNOWN.filter(({ transports }) => transports.includes(transport));
  if (type !== undefined) return over.find((one) => one.type === type) ?? bytesOver(transport);
  return over.find(({ isFirst }) => isFirst(first)) ?? over.find(({ ports }) => ports.includes(port)) ?? bytesOver(transport);
}

/** True: a client of a protocol that is known may have sent this. */
export const isFromClient = (transport: "tcp" | "udp", bytes: Buffer): boolean =>
  KNOWN.some(({ transports, isFirst }) => transports.includes(transport) && isFirst(bytes));

/** The first message of these bytes, undefined where it has not ended. Null: they are none. */
export function messageIn({ lengthOf }: Protocol, bytes: Buffer): Buffer | undefined | null {
  if (!lengthOf) return bytes;
  if (bytes.length === 0) return undefined;
  const length = lengthOf(bytes);
  if (length === null || length === 0 || (length ?? 0) > MAX_MESSAGE_BYTES) return null;
  if (length === undefined) return bytes.length > MAX_MESSAGE_BYTES ? null : undefined;
  return bytes.length < length ? undefined : bytes.subarray(0, length);
}

/** What two requests that ask the same have in common: the message without the fields that change by themselves. */
export function essenceOf(protocol: Protocol, message: Buffer, isFromDevice: boolean): Buffer {
  const fields = protocol.fieldsOf(message, isFromDevice);
  if (fields.length === 0) return message;
  const kept: Buffer[] = [];
  let at = 0;
  for (const { from, to } of fields) {
    kept.push(message.subarray(at, from));
    at = to;
  }
  return Buffer.concat([...kept, message.subarray(at)]);
}

/** True: the answer has the numbers of this request. */
export function isAnswerTo(protocol: Protocol, request: Buffer, answer: Buffer): boolean {
  const asked = protocol.fieldsOf(request, false);
  return protocol.fieldsOf(answer, true).every(({ name, from, to }) => {
    const own = asked.find((one) => one.name === name);
    return !own || answer.subarray(from, to).equals(request.subarray(own.from, own.to));
  });
}

/**
 * A recorded answer as this request gets it. `memory`: the last fields of earlier requests on the same connection, which some answers carry;
 * this request's are added.
 */
export function answerFor(protocol: Protocol, recorded: Buffer, request: Buffer, memory: Map<string, Buffer>): Buffer {
  for (const { name, from, to } of protocol.fieldsOf(request, false)) memory.set(name, Buffer.from(request.subarray(from, to)));
  const parts: Buffer[] = [];
  let at = 0;
  for (const { name, from, to } of protocol.fieldsOf(recorded, true)) {
    parts.push(recorded.subarray(at, from), memory.get(name) ?? recorded.subarray(from, to));
    at = to;
  }
  return Buffer.concat([...parts, recorded.subarray(at)]);
}
