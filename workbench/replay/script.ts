import type { Protocol } from "../../drivers/replay.ts";
import { answerFor, essenceOf } from "./protocols.ts";

/** What a device was asked in a recording, and what it answered: in the order of the recording, then the last again. */

interface Answer {
  /** Messages or datagrams; of bytes without messages one. */
  readonly parts: readonly Buffer[];
  readonly essence: Buffer;
  /** Moments at which it was given, one after the other without another answer in between: numbers of the device's answers, from 1 on. */
  readonly moments: number[];
}

/** A request of the recording, with all that it was answered. */
export interface Asked {
  readonly request: Buffer;
  readonly answers: Answer[];
  /** What is given next. */
  next: number;
  given: number;
}

/** What a request of a client gets. */
export type Found =
  | {
      readonly kind: "answer";
      readonly parts: readonly Buffer[];
      readonly isByPlace: boolean;
      /** Moment of the recording. Undefined: it is the first answer of this request, which holds from the beginning. */
      readonly moment: number | undefined;
    }
  /** The device had no answer to it in the recording either. */
  | { readonly kind: "silent" }
  /** The recording has no such request. */
  | { readonly kind: "unknown" };

/** The most that is kept of all devices of a recording, with what keeping each answer costs. */
export const MAX_KEPT_BYTES = 64 * 1024 * 1024;
const COST_BYTES = 300;
/** Cost of an answer that was given once more. */
const MOMENT_BYTES = 8;
/** Requests in their order, for what is found by its place. */
const MAX_PLACES = 100_000;
/** Requests that are looked through for the nearest one. */
const MAX_COMPARED = 2000;
const MAX_GREETINGS = 100;

/** Shared by the scripts of one recording. */
export interface Room {
  bytes: number;
  /** Answers for which there was none. */
  notKept: number;
}

export class Script {
  readonly #protocol: Protocol;
  readonly #room: Room;
  readonly #asked = new Map<string, Asked>();
  readonly #places: Asked[] = [];
  readonly #greetings: Buffer[] = [];
  #place = 0;
  #greeting = 0;
  #moment = 0;

  constructor(protocol: Protocol, room: Room) {
    this.#protocol = protocol;
    this.#room = room;
  }

  /** Different requests. */
  get size(): number {
    return this.#asked.size;
  }

  /** Different requests with what they were answered. */
  asked(): Iterable<Asked> {
    return this.#asked.values();
  }

  /** Notes a request of the recording. Undefined: there is no room for it. */
  ask(request: Buffer): Asked | undefined {
    const key = this.#keyOf(request);
    const known = this.#asked.get(key);
    if (!known && !this.#take(request.length * 2)) return undefined;
    const asked = known ?? { request: Buffer.from(request), answers: [], next: 0, given: 0 };
    if (!known) this.#asked.set(key, asked);
    if (this.#protocol.type === "bytes" && this.#places.length < MAX_PLACES) this.#places.push(asked);
    return asked;
  }

  /** Notes what a request was answered. */
  answer(asked: Asked, parts: readonly Buffer[]): void {
    if (parts.length === 0) return;
    const essence = Buffer.concat(parts.map((part) => essenceOf(this.#protocol, part, true)));
    const last = asked.answers.at(-1);
    const moment = ++this.#moment;
    if (last?.essence.equals(essence)) {
      if (this.#take(MOMENT_BYTES, 0)) last.moments.push(moment);
    } else if (this.#take(essence.length * 2))
      asked.answers.push({ parts: parts.map((part) => Buffer.from(part)), essence, moments: [moment] });
  }

  /** Notes what the device said before it was asked. */
  greet(bytes: Buffer): void {
    if (this.#greetings.length < MAX_GREETINGS && this.#take(bytes.length)) this.#greetings.push(Buffer.from(bytes));
  }

  /** What the device says to whoever connects. */
  greeting(): Buffer | undefined {
    const greeting = this.#greetings[Math.min(this.#greeting, this.#greetings.length - 1)];
    this.#greeting++;
    return greeting;
  }

  /** What a client's request is answered; `memory` as `answerFor` has it. */
  find(request: Buffer, memory: Map<string, Buffer>): Found {
    const asked = this.#asked.get(this.#keyOf(request));
    const found = asked ?? this.#byPlace(request);
    if (!found) return { kind: "unknown" };
    if (this.#places.length > 0) this.#moveBehind(found);
    const isFirst = found.next + found.given === 0;
    const moment = found.answers[found.next]?.moments[found.given];
    const answer = this.#next(found);
    if (!answer) return { kind: "silent" };
    return {
      kind: "answer",
      moment: isFirst ? undefined : moment,
      parts: answer.parts.map((part) => answerFor(this.#protocol, part, request, memory)),
      isByPlace: asked === undefined,
    };
  }

  /** True: a longer request of the recording begins like this. */
  isBeginning(bytes: Buffer): boolean {
    const key = bytes.toString("latin1");
    for (const known of this.#asked.keys()) if (known.length > key.length && known.startsWith(key)) return true;
    return false;
  }

  /** The longest request of the recording that these bytes begin with. */
  beginningOf(bytes: Buffer): Buffer | undefined {
    const key = bytes.toString("latin1");
    let longest: Buffer | undefined;
    for (const [known, { request }] of this.#asked) if (request.length > (longest?.length ?? 0) && key.startsWith(known)) longest = request;
    return longest;
  }

  /** The request that differs least: of the same length before others. Undefined: there is none. */
  nearest(request: Buffer): Buffer | undefined {
    const wanted = essenceOf(this.#protocol, request, false);
    let best: Buffer | undefined;
    let least = Number.POSITIVE_INFINITY;
    let compared = 0;
    for (const [key, asked] of this.#asked) {
      if (++compared > MAX_COMPARED) break;
      const differences = Math.abs(key.length - wanted.length) * 1000 + differingBytes(key, wanted);
      if (differences < least) [least, best] = [differences, asked.request];
    }
    return best;
  }

  #keyOf(request: Buffer): string {
    return essenceOf(this.#protocol, request, false).toString("latin1");
  }

  /** The next answer of the recording; at its end the last one again. */
  #next(asked: Asked): Answer | undefined {
    const answer = asked.answers[asked.next];
    if (answer && ++asked.given >= answer.moments.length && asked.next + 1 < asked.answers.length) {
      asked.next++;
      asked.given = 0;
    }
    return answer;
  }

  /** Of a protocol that is not known, a request may have a counter: the next one of the recording then, if it is as long. */
  #byPlace(request: Buffer): Asked | undefined {
    const next = this.#places[this.#place];
    return next?.request.length === request.length ? next : undefined;
  }

  #moveBehind(asked: Asked): void {
    const at = this.#places.indexOf(asked, this.#place);
    if (at >= 0) this.#place = at + 1;
  }

  #take(bytes: number, cost = COST_BYTES): boolean {
    if (this.#room.bytes + bytes + cost > MAX_KEPT_BYTES) {
      this.#room.notKept++;
      return false;
    }
    this.#room.bytes += bytes + cost;
    return true;
  }
}

function differingBytes(key: string, wanted: Buffer): number {
  let differences = 0;
  for (let i = 0; i < Math.min(key.length, wanted.length); i++) if (key.charCodeAt(i) !== wanted[i]) differences++;
  return differences;
}
