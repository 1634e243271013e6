import { replayTcp as finsTcp, replayUdp as finsUdp } from "../../drivers/fins/replay.ts";
import { replay as modbus, replayRtu as modbusRtu } from "../../drivers/modbus_tcp/replay.ts";
import { replay as opcua } from "../../drivers/opcua/replay.ts";
import { MAX_MESSAGE_BYTES, noFields, type Protocol } from "../../drivers/replay.ts";
import { replay as s7 } from "../../drivers/s7/replay.ts";
import { replay as s7plus } from "../../drivers/s7plus/replay.ts";
import { replay as enip } from "../../drivers/vendor_a/replay.ts";
import { replay as gateway } from "../../drivers/vendor_gateway/replay.ts";
import { BOUND_TYPES } from "../../src/model/profile-details.ts";

const TLS: Protocol = {
  type: "tls",
  words: "TLS",
  ports: [],
  transports: ["tcp"],
  isFirst: (bytes) => bytes[0] === 0x16 && bytes[1] === 3,
  fieldsOf: noFields,
  refusal: "what is encrypted cannot be answered",
};

/** Of which nothing is known: the same bytes are the same request. */
const bytesOver = (transport: "tcp" | "udp"): Protocol => ({
  type: "bytes",
  words: `bytes over ${transport.toUpperCase()}`,
  ports: [],
  transports: [transport],
  isFirst: () => true,
  fieldsOf: noFields,
});

/** The more bytes tell a protocol, the earlier it comes. */
const KNOWN: readonly Protocol[] = [opcua, TLS, finsTcp, gateway, s7plus, s7, enip, modbus, modbusRtu, finsUdp];
export const REPLAY_TYPES: readonly string[] = [...new Set(KNOWN.map(({ type }) => type)), "bytes", ...BOUND_TYPES].filter(
  (type) => type !== "tls",
);

/** Ports that devices listen on and clients do not. */
export const isDevicePort = (port: number): boolean => KNOWN.some(({ ports }) => ports.includes(port));

/** What a client speaks, by the type that a person names, by its first bytes, or by the port of the device. */
export function protocolOf(transport: "tcp" | "udp", port: number, first: Buffer, type: string | undefined): Protocol {
  const over = KNOWN.filter(({ transports }) => transports.includes(transport));
  if (type !== undefined) {
    const named = over.filter((one) => one.type === type);
    return named.find(({ isFirst }) => isFirst(first)) ?? named[0] ?? bytesOver(transport);
  }
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
  return protocol.fieldsOf(answer, true).every(({ name, from, to, isOwn }) => {
    if (isOwn === true) return true;
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
