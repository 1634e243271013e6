import type { Protocol } from "../../drivers/replay.ts";
import { type End, endText } from "../../src/model/address.ts";
import type { Conversation, Piece, RecordingCounts, RecordingWish } from "../../src/model/workbench.ts";
import { isAnswerTo, isDevicePort, isFromClient, messageIn, protocolOf } from "./protocols.ts";
import { type Asked, type Room, Script } from "./script.ts";

/** A device of a recording over one transport. */
export interface RecordedDevice {
  readonly end: End;
  readonly transport: "tcp" | "udp";
  readonly protocol: Protocol;
  readonly script: Script;
  readonly counts: RecordingCounts;
}

/** Requests of one connection that wait for an answer. */
const MAX_WAITING = 256;
const MAX_DEVICES = 1000;
/** Conversations under way at once; the one that began first is over for a new one. */
const MAX_TALKS = 10_000;
/** What one end sends before the other does. */
const MAX_TURN_BYTES = 1024 * 1024;

/** Makes devices of what a capture's conversations have. */
export class Recording {
  readonly room: Room = { bytes: 0, notKept: 0 };
  readonly #wish: RecordingWish;
  readonly #devices = new Map<string, RecordedDevice>();
  readonly #talks = new Map<number, Talk | undefined>();

  constructor(wish: RecordingWish) {
    this.#wish = wish;
  }

  /** In the order of the capture. */
  get devices(): readonly RecordedDevice[] {
    return [...this.#devices.values()].filter(({ counts }) => counts.requests > 0 || counts.connections > 0);
  }

  add(pieces: readonly Piece[]): void {
    for (const piece of pieces) {
      const { id } = piece.conversation;
      if (!this.#talks.has(id)) this.#begin(piece);
      this.#talks.get(id)?.add(piece);
    }
  }

  end(): void {
    for (const talk of this.#talks.values()) talk?.end();
    this.#talks.clear();
  }

  #begin(piece: Piece): void {
    this.#talks.set(piece.conversation.id, this.#talkOf(piece));
    const [oldest] = this.#talks;
    if (this.#talks.size <= MAX_TALKS || !oldest) return;
    oldest[1]?.end();
    this.#talks.delete(oldest[0]);
  }

  /** Undefined: a conversation with another device than the one that is meant. */
  #talkOf({ conversation, isFromFirst, bytes }: Piece): Talk | undefined {
    const isFirstDevice = isDeviceFirst(conversation, isFromFirst, bytes, this.#wish);
    const end = isFirstDevice ? conversation.first : conversation.second;
    const { transport } = conversation;
    if (!isMeant(end, this.#wish) || transport !== (this.#wish.transport ?? transport)) return undefined;
    const key = `${transport} ${endText(end)}`;
    const known = this.#devices.get(key);
    if (!known && this.#devices.size >= MAX_DEVICES) return undefined;
    // A device that speaks first shows nothing of the protocol yet; its port does.
    const first = isFromFirst === isFirstDevice ? Buffer.alloc(0) : bytes;
    const protocol = known?.protocol ?? protocolOf(transport, end.port, first, this.#wish.type);
    const counts = { connections: 0, requests: 0, answers: 0, unpaired: 0, strayBytes: 0 };
    const device = known ?? { end, transport, protocol, script: new Script(protocol, this.room), counts };
    this.#devices.set(key, device);
    device.counts.connections++;
    return protocol.lengthOf || transport === "udp" ? new MessageTalk(device, isFirstDevice) : new TurnTalk(device, isFirstDevice);
  }
}

const isMeant = (end: End, { address = end.address, port = end.port }: RecordingWish): boolean =>
  end.address === address && end.port === port;

/** Which end is the device: the one that is meant, the one that was connected to, the one with the port of a device, or the lower port. */
function isDeviceFirst(
  { transport, first, second, isOpeningSeen }: Conversation,
  isFromFirst: boolean,
  bytes: Buffer,
  wish: RecordingWish,
): boolean {
  if (wish.address !== undefined && isMeant(first, wish) !== isMeant(second, wish)) return isMeant(first, wish);
  if (isOpeningSeen) return false;
  if (isDevicePort(first.port) !== isDevicePort(second.port)) return isDevicePort(first.port);
  if (isFromClient(transport, bytes)) return !isFromFirst;
  return transport === "tcp" && first.port < second.port;
}

interface Talk {
  add(piece: Piece): void;
  /** The capture has no more of it. */
  end(): void;
}

/** A conversation whose messages can be told apart, or are datagrams: an answer belongs to the request with the same numbers. */
class MessageTalk implements Talk {
  readonly #device: RecordedDevice;
  readonly #isFirstDevice: boolean;
  readonly #held: { client: Buffer; device: Buffer } = { client: Buffer.alloc(0), device: Buffer.alloc(0) };
  readonly #waiting: { readonly request: Buffer; readonly asked: Asked | undefined }[] = [];

  constructor(device: RecordedDevice, isFirstDevice: boolean) {
    this.#device = device;
    this.#isFirstDevice = isFirstDevice;
  }

  add({ isFromFirst, bytes, lostBytes, conversation }: Piece): void {
    const who = isFromFirst === this.#isFirstDevice ? "device" : "client";
    const { protocol, counts } = this.#device;
    if (conversation.transport === "udp") {
      this.#message(who, bytes);
      return;
    }
    // Behind a gap nothing of the message before it is of use.
    if (lostBytes > 0) counts.strayBytes += this.#held[who].length;
    let rest = lostBytes > 0 ? bytes : Buffer.concat([this.#held[who], bytes]);
    for (let message = messageIn(protocol, rest); message !== undefined; message = messageIn(protocol, rest)) {
      if (message === null) {
        counts.strayBytes += rest.length;
        rest = Buffer.alloc(0);
        break;
      }
      this.#message(who, message);
      rest = rest.subarray(message.length);
    }
    this.#held[who] = rest;
  }

  end(): void {
    this.#device.counts.strayBytes += this.#held.client.length + this.#held.device.length;
  }

  #message(who: "client" | "device", message: Buffer): void {
    const { protocol, script, counts } = this.#device;
    if (who === "client") {
      counts.requests++;
      this.#waiting.push({ request: message, asked: script.ask(message) });
      if (this.#waiting.length > MAX_WAITING) this.#waiting.shift();
      return;
    }
    const at = this.#waiting.findIndex(({ request }) => isAnswerTo(protocol, request, message));
    const [waiting] = at < 0 ? [] : this.#waiting.splice(at, 1);
    if (!waiting) {
      counts.unpaired++;
      return;
    }
    counts.answers++;
    if (waiting.asked) script.answer(waiting.asked, [message]);
  }
}

/** A conversation of which only is known who sent what: all that the device sends until it is asked again is one answer. */
class TurnTalk implements Talk {
  readonly #device: RecordedDevice;
  readonly #isFirstDevice: boolean;
  #request: Buffer[] = [];
  #answer: Buffer[] = [];
  #bytes = 0;

  constructor(device: RecordedDevice, isFirstDevice: boolean) {
    this.#device = device;
    this.#isFirstDevice = isFirstDevice;
  }

  add({ isFromFirst, bytes }: Piece): void {
    const isFromDevice = isFromFirst === this.#isFirstDevice;
    if (!isFromDevice && this.#answer.length > 0) this.#finish();
    this.#bytes += bytes.length;
    if (this.#bytes > MAX_TURN_BYTES) this.#device.counts.strayBytes += bytes.length;
    else (isFromDevice ? this.#answer : this.#request).push(bytes);
  }

  end(): void {
    this.#finish();
  }

  #finish(): void {
    const { script, counts } = this.#device;
    const [request, answer] = [Buffer.concat(this.#request), Buffer.concat(this.#answer)];
    this.#request = [];
    this.#answer = [];
    this.#bytes = 0;
    if (request.length === 0) {
      if (answer.length > 0) script.greet(answer);
      return;
    }
    counts.requests++;
    const asked = script.ask(request);
    if (answer.length === 0) return;
    counts.answers++;
    if (asked) script.answer(asked, [answer]);
  }
}
