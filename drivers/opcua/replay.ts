import { type Bits, type Field, field, MAX_MESSAGE_BYTES, type MadeAnswer, type MemoryView, type Protocol } from "../replay.ts";
import { facts } from "./facts.ts";
import {
  acknowledged,
  answerIn,
  fault,
  HEADER_BYTES,
  MESSAGE_BYTES,
  message,
  opened,
  openingAt,
  type RequestHead,
  rejected,
  requestIn,
  SERVICE,
  STATUS,
  sessionAnswer,
  u32,
} from "./replay-session.ts";

/** Services whose answers are those of the recording where the same is asked: they only read. */
const LITERAL: ReadonlySet<number> = new Set([
  SERVICE.read,
  SERVICE.browse,
  SERVICE.browseNext,
  SERVICE.translate,
  SERVICE.findServers,
  SERVICE.registerNodes,
  SERVICE.closeSession,
]);

/** A value that a Read wants: node, attribute, range of indices and encoding, as text. */
const areaOf = (node: string, attribute: number, range: string | null, encoding: string): string =>
  `${node} attribute ${attribute} range ${range ?? ""} encoding ${encoding}`;

/** Areas of a Read, in its order. Throws RangeError where it ends too early. */
function wantedBy({ parameters }: RequestHead): readonly string[] {
  parameters.int64();
  parameters.uint32();
  const nodes = parameters.array(() => {
    const [node, attribute] = [parameters.nodeId(), parameters.uint32()];
    return areaOf(node, attribute, parameters.string(), parameters.qualifiedName());
  });
  return (nodes ?? []) as readonly string[];
}

/** Each end numbers and dates its messages; an answer gets the number and the time of its request. */
const ownField = (name: string, from: number, bytes: number): Field => ({ ...field(name, from, bytes), isOwn: true });

const typeOf = (bytes: Buffer): string => bytes.toString("latin1", 0, 3);

/** Body of a MSG in one chunk or in several, without what is before it in each. */
function bodyOf(bytes: Buffer): Buffer {
  const bodies: Buffer[] = [];
  for (let at = 0; at + HEADER_BYTES <= bytes.length; ) {
    const length = Math.max(HEADER_BYTES, bytes.readUInt32LE(at + 4));
    bodies.push(bytes.subarray(at + MESSAGE_BYTES, at + length));
    at += length;
  }
  const [only = Buffer.alloc(0), ...others] = bodies;
  return others.length === 0 ? only : Buffer.concat(bodies);
}

/** The result of reading bytes of others; undefined: they end too early, or say lengths that cannot be. */
function readable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function told(request: Buffer, answer: Buffer): readonly Bits[] {
  if (typeOf(request) !== "MSG" || typeOf(answer) !== "MSG") return [];
  return readable(() => valuesIn(bodyOf(request), bodyOf(answer))) ?? [];
}

function valuesIn(request: Buffer, answer: Buffer): readonly Bits[] {
  const [asked, { service, result, parameters }] = [requestIn(request), answerIn(answer)];
  if (asked.service !== SERVICE.read || service !== SERVICE.read + 3 || result !== 0) return [];
  const areas = wantedBy(asked);
  if (parameters.elements() !== areas.length) return [];
  const values = areas.map((area): Bits => {
    const from = parameters.position;
    parameters.dataValue();
    const bytes = answer.subarray(from, parameters.position);
    return { area, from: 0, count: bytes.length * 8, bytes };
  });
  parameters.array(() => parameters.diagnosticInfo());
  // A signature, or something else, follows: it is another message than it seems.
  return parameters.left === 0 && asked.parameters.left === 0 ? values : [];
}

function answer(request: Buffer, view: MemoryView): MadeAnswer | undefined {
  return readable(() => answerTo(request, view));
}

function answerTo(request: Buffer, view: MemoryView): MadeAnswer | undefined {
  const good = (made: Buffer): MadeAnswer => ({ message: made, isRefusal: false });
  switch (request.toString("latin1", 0, 4)) {
    case "HELF":
      return request.length < HEADER_BYTES + 20 ? undefined : good(acknowledged(request));
    case "OPNF": {
      const channel = opened(request);
      return channel ? good(channel) : { message: rejected(), isRefusal: true };
    }
    // A channel ends without an answer.
    case "CLOF":
      return good(Buffer.alloc(0));
    case "MSGF":
      break;
    default:
      return undefined;
  }
  const head = requestIn(request.subarray(MESSAGE_BYTES));
  const session = sessionAnswer(head);
  if (session) return good(message(request, head, session));
  if (head.service !== SERVICE.read) return { message: fault(request, head, STATUS.serviceUnsupported), isRefusal: true };
  const values = wantedBy(head).map((area) => view.whole(area));
  // A DataValue that has a status only (OPC 10000-6, 5.2.2.17).
  const unknown = Buffer.concat([Buffer.of(2), u32(STATUS.nodeIdUnknown)]);
  const results = values.map((value) => value ?? unknown);
  return { message: message(request, head, [u32(results.length), ...results, u32(-1)]), isRefusal: values.includes(undefined) };
}

/** Chunks up to the last one of a message. */
function lengthOf(bytes: Buffer): number | undefined | null {
  for (let at = 0; bytes.length >= at + HEADER_BYTES; ) {
    const type = bytes.toString("latin1", at, at + 4);
    const length = bytes.readUInt32LE(at + 4);
    if (!/^(HEL|ACK|ERR|OPN|MSG|CLO)[FCA]$/.test(type) || length < HEADER_BYTES || length > MAX_MESSAGE_BYTES) return null;
    at += length;
    if (!type.endsWith("C")) return at;
  }
  return undefined;
}

/** Numbers of the channel in each chunk; of requests that are answered literally, token, time and handle too. */
function fieldsOf(bytes: Buffer, isFromDevice: boolean): readonly Field[] {
  if (typeOf(bytes) === "OPN") {
    const opening = readable(() => openingAt(bytes));
    return opening && opening.at + 8 <= bytes.length ? [ownField("sequence", opening.at, 4), field("request", opening.at + 4, 4)] : [];
  }
  if (typeOf(bytes) !== "MSG") return [];
  const fields: Field[] = [];
  for (let at = 0; at + MESSAGE_BYTES <= bytes.length; at += Math.max(MESSAGE_BYTES, bytes.readUInt32LE(at + 4))) {
    const numbers = at + HEADER_BYTES;
    fields.push(field("channel", numbers, 4), field("token", numbers + 4, 4));
    fields.push(ownField("sequence", numbers + 8, 4), field("request", numbers + 12, 4));
    if (at === 0) fields.push(...(readable(() => headFields(bytes.subarray(MESSAGE_BYTES), isFromDevice)) ?? []));
  }
  return fields;
}

function headFields(body: Buffer, isFromDevice: boolean): readonly Field[] {
  const timed = (timeAt: number): readonly Field[] => [
    ownField("time", MESSAGE_BYTES + timeAt, 8),
    field("handle", MESSAGE_BYTES + timeAt + 8, 4),
  ];
  if (isFromDevice) return timed(answerIn(body).timeAt);
  const { service, tokenFrom, timeAt } = requestIn(body);
  return LITERAL.has(service) ? [field("session", MESSAGE_BYTES + tokenFrom, timeAt - tokenFrom), ...timed(timeAt)] : [];
}

export const replay: Protocol = {
  type: facts.type,
  words: facts.title,
  ports: [facts.standardPort],
  transports: ["tcp"],
  lengthOf,
  isFirst: (bytes) => /^(HEL|OPN|MSG)F/.test(bytes.toString("latin1", 0, 4)),
  fieldsOf,
  refusal: "no read without security is in the capture; collector simulate opcua is a server to practise with",
  memory: { told, answer },
};
