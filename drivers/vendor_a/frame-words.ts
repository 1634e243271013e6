import { emptyReply, OFFSET_BYTES, parseReply, REPLY, SERVICE, STATUS } from "./cip.ts";
import { fence, isObject } from "./fence.ts";
import { COMMAND, messageLength, parseAnswer, REQUEST_AT, UNIT_AT } from "./frames.ts";
import { MANAGER_SERVICE } from "./manager.ts";
import { CLASS, DATA_SEGMENT_BYTES, LIST_VARIABLES } from "./omron/objects.ts";
import { isToNode } from "./pccc/fence.ts";
import { EXECUTE } from "./pccc/frames.ts";
import { envelopeReplyWords, envelopeWords, fromNodeWords, toNodeWords } from "./pccc/words.ts";
import { connectionWords } from "./refusals.ts";

const CONNECTION_MANAGER = 0x06;
const MANAGER_WORDS: Readonly<Record<number, string>> = {
  [MANAGER_SERVICE.forwardOpen]: "Forward Open",
  [MANAGER_SERVICE.largeForwardOpen]: "Large Forward Open",
  [MANAGER_SERVICE.forwardClose]: "Forward Close",
};
const SERVICE_WORDS: Readonly<Record<number, string>> = {
  [SERVICE.attributesAll]: "identity",
  [SERVICE.attributeList]: "attributes",
  [SERVICE.multiple]: "Multiple Service Packet",
  [SERVICE.readTag]: "Read Tag",
  [SERVICE.readFragment]: "Read Tag Fragmented",
  [SERVICE.listInstances]: "list of tags",
  [LIST_VARIABLES]: "list of variables",
  [EXECUTE]: "Execute PCCC",
  ...MANAGER_WORDS,
};

const CLASS_WORDS: Readonly<Record<number, string>> = { [CLASS.variable]: "type of variable", [CLASS.type]: "type" };
const DATA_SEGMENT = 0x80;

/** See `Driver.frameWords`. */
export function frameWords(frame: Buffer, direction: "out" | "in"): string | undefined {
  return direction === "out" ? requestWords(frame) : answerWords(frame);
}

function requestWords(frame: Buffer): string | undefined {
  // The fence passes only whole requests of the forms that are read here.
  if (fence(frame) !== true) return undefined;
  switch (frame.readUInt16LE(0)) {
    case COMMAND.register:
      return "RegisterSession";
    case COMMAND.unregister:
      return "UnRegisterSession";
    case COMMAND.sendUnit:
      return isToNode(frame, UNIT_AT, frame.length) ? toNodeWords(frame.subarray(UNIT_AT)) : cipWords(frame.subarray(UNIT_AT));
    default:
      return unconnectedWords(frame.subarray(REQUEST_AT));
  }
}

function unconnectedWords(cip: Buffer): string {
  if (!isObject(cip, 0, CONNECTION_MANAGER)) return cipWords(cip);
  if (cip[0] !== MANAGER_SERVICE.unconnectedSend) return MANAGER_WORDS[cip[0] ?? 0] ?? "connection manager";
  // Behind service and path: priority, ticks, and the length of the message that goes along the route.
  return `along a route: ${cipWords(cip.subarray(10, 10 + cip.readUInt16LE(8)))}`;
}

function cipWords(cip: Buffer): string {
  const service = cip[0] ?? 0;
  if (service === EXECUTE) return envelopeWords(cip);
  const words = SERVICE_WORDS[service] ?? `service 0x${service.toString(16)}`;
  const pathEnd = 2 + (cip[1] ?? 0) * 2;
  const tag = tagOf(cip.subarray(2, pathEnd));
  if (service === SERVICE.attributesAll && CLASS_WORDS[cip[3] ?? 0] !== undefined)
    return `${CLASS_WORDS[cip[3] ?? 0]} ${cip.readUIntLE(6, pathEnd - 6)}`;
  if (service === SERVICE.readTag && tag === undefined) return "definition of a template";
  if (service === SERVICE.readTag || service === SERVICE.readFragment) {
    const count = cip.readUInt16LE(pathEnd);
    const from = service === SERVICE.readFragment ? `, from byte ${cip.readUInt32LE(pathEnd + 2)}` : "";
    return `${words} ${tag ?? ""}${count === 1 ? "" : `, ${count} elements`}${from}`;
  }
  if (service !== SERVICE.multiple) return words;
  const [count, first] = [cip.readUInt16LE(pathEnd), cip.readUInt16LE(pathEnd + 2)];
  const end = count > 1 ? cip.readUInt16LE(pathEnd + 2 + OFFSET_BYTES) : cip.length - pathEnd;
  return `${words} of ${count}, the first: ${cipWords(cip.subarray(pathEnd + first, pathEnd + end))}`;
}

/** The name that symbols and elements of a path give; undefined: it begins with another segment. */
function tagOf(path: Buffer): string | undefined {
  if (path[0] !== 0x91) return undefined;
  let name = "";
  let part = "";
  let elements: number[] = [];
  const close = (): void => {
    if (elements.length > 0) name += `[${elements.join(",")}]`;
    elements = [];
  };
  for (let at = 0; at < path.length; ) {
    const kind = path[at] ?? 0;
    if (kind === 0x91) {
      close();
      const length = path[at + 1] ?? 0;
      name += `${name === "" ? "" : "."}${path.toString("utf8", at + 2, at + 2 + length)}`;
      at += 2 + length + (length & 1);
    } else if (kind === DATA_SEGMENT) {
      part = `, ${path.readUInt16LE(at + 6)} bytes from byte ${path.readUInt32LE(at + 2)}`;
      at += DATA_SEGMENT_BYTES;
    } else {
      const bytes = kind === 0x28 ? 1 : kind === 0x29 ? 2 : 4;
      elements.push(path.readUIntLE(at + (bytes === 1 ? 1 : 2), bytes));
      at += bytes === 1 ? 2 : 2 + bytes;
    }
  }
  close();
  return `${name}${part}`;
}

function answerWords(frame: Buffer): string | undefined {
  if (messageLength(frame, 0) !== frame.length) return undefined;
  const answer = parseAnswer(frame);
  if (typeof answer !== "object") return undefined;
  if (answer.kind === "registered") return answer.status === 0 ? "session registered" : `RegisterSession: status ${answer.status}`;
  if (answer.kind === "error") return `EtherNet/IP status ${answer.status}`;
  const fromNode = answer.kind === "connected" ? fromNodeWords(frame, answer.from, answer.to) : undefined;
  if (fromNode !== undefined) return fromNode;
  const reply = emptyReply();
  if (parseReply(frame, answer.from, answer.to, reply) !== undefined) return undefined;
  const service = reply.service & ~REPLY;
  if (service === EXECUTE && reply.status === STATUS.ok) return envelopeReplyWords(frame, reply.at, reply.end);
  const words = SERVICE_WORDS[service] ?? `service 0x${service.toString(16)}`;
  if (reply.status === STATUS.ok) return `${words}: ${reply.end - reply.at} bytes`;
  return `${words}: ${reply.status === STATUS.partial ? `${reply.end - reply.at} bytes, more follow` : connectionWords(reply.status, reply.extended)}`;
}
