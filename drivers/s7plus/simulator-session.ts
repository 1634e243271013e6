import { randomBytes } from "node:crypto";
import type { PlcConnection } from "./simulator-connection.ts";
import { ATTRIBUTES, sessionObject, USINT_ARRAY, versionStruct } from "./simulator-identity.ts";
import { EXPORTER, isRightAnswer, isRightLogin, nextKey } from "./simulator-login.ts";
import {
  ERROR2,
  FILL,
  type FunctionName,
  type Message,
  parseRequest,
  type RequestHead,
  responseHead,
  returnValueOf,
} from "./simulator-messages.ts";
import { explored } from "./simulator-objects.ts";
import type { Misbehaviour, PlcRequest, S7PlusPlc } from "./simulator-plc.ts";
import { readItems } from "./simulator-reading.ts";
import { PARSERS, type Parsed, QUALIFIER } from "./simulator-requests.ts";
import { hex, WireError, type Writer } from "./simulator-wire.ts";

const SESSION_CONTAINER = 285;
const CHALLENGE_BYTES = 20;
const NO_ACCESS = 4;
/** Codes: some items failed, the session has ended, the service is not allowed. */
const [SOME_FAILED, SESSION_ENDED, NOT_ALLOWED] = [19, 22, -107];
/** Codes that tell the level that was reached. */
const LEGITIMATED: Readonly<Record<number, number>> = { 1: 33, 2: 25, 3: 26 };
/** Functions by the counter that their integrity ids come from. */
const SETTERS: ReadonlySet<FunctionName> = new Set(["setVariable", "setMultiVariables", "deleteObject", "createObject"]);

/** A request, taken apart. */
interface Asked extends RequestHead {
  readonly name: FunctionName;
  readonly integrity: number;
}

/** The session of one connection: created, set up, logged in, working, deleted. */
export class PlcSession {
  readonly #plc: S7PlusPlc;
  readonly #connection: PlcConnection;
  #state: "none" | "created" | "open" | "deleted" = "none";
  #id = 0;
  #level = NO_ACCESS;
  #isDelegitimated = false;
  /** The structure that the client has to send back. */
  #version: Buffer = Buffer.alloc(0);
  #challenge: Buffer = Buffer.alloc(0);
  /** Rolled on with each attempt to log in. */
  #key: Buffer | undefined;
  #sequence: number | undefined;
  readonly #counters = { read: undefined as number | undefined, set: undefined as number | undefined };

  constructor(plc: S7PlusPlc, connection: PlcConnection) {
    this.#plc = plc;
    this.#connection = connection;
  }

  get isOpen(): boolean {
    return this.#state === "created" || this.#state === "open";
  }

  /** The CPU knows it no longer. */
  forget(): void {
    this.#state = "deleted";
  }

  setLevel(level: number): void {
    this.#level = level;
  }

  delegitimate(): void {
    this.#isDelegitimated = true;
    this.#level = this.#plc.level;
  }

  /** Throws a WireError for what cannot be understood. */
  take({ data, version, frameBytes }: Message): void {
    if (frameBytes > this.#plc.maxFrameBytes) {
      this.#plc.noteViolation(`a frame of ${frameBytes} bytes`);
      this.#connection.hangUp("rst");
      return;
    }
    const head = parseRequest(data);
    this.#checkSequence(head.sequence);
    const { name } = head;
    if (name === undefined || name === "initSsl") {
      this.#plc.noteViolation(`function ${head.functionId.toString(16)}, which no reader needs`);
      this.#reply(version, responseHead(head.functionId, head.sequence, returnValueOf(NOT_ALLOWED)).bytes(FILL).done());
    } else if (name === "createObject") this.#create(head, version);
    else if (head.sessionId !== this.#id || !this.isOpen) {
      this.#plc.noteViolation(`${name} with the session id ${head.sessionId.toString(16)}`);
      this.#reply(version, responseHead(head.functionId, head.sequence, returnValueOf(-106)).bytes(FILL).done());
    } else if (version !== 2) throw new WireError(`a frame of version ${version} in a session`);
    else if (this.#state === "created") this.#setUp(head);
    else this.#work(name, head, data, frameBytes);
  }

  #checkSequence(sequence: number): void {
    const expected = this.#sequence === undefined ? sequence : this.#sequence + 1;
    // 65535 is followed by 0 or 1.
    if (sequence !== expected && !(expected === 65_536 && sequence <= 1))
      this.#plc.noteViolation(`sequence ${sequence} after ${this.#sequence}`);
    this.#sequence = sequence;
  }

  #reply(version: number, data: Buffer): void {
    this.#connection.send(version, data);
  }

  #create({ reader, functionId, sequence, transportFlags }: RequestHead, version: number): void {
    if (version !== 1) throw new WireError("a session is created in a frame of version 1");
    if (transportFlags !== 0x36) throw new WireError("a session is created with the flags 36");
    if (reader.u32() !== SESSION_CONTAINER) throw new WireError("another object than a session is created");
    reader.value();
    this.#plc.noteRequest({
      name: "createObject",
      sessionId: 0,
      sequence,
      integrity: undefined,
      frameBytes: 0,
      items: [],
      object: SESSION_CONTAINER,
    });
    const { createCode, device } = this.#plc;
    const id = createCode < 0 || this.#state !== "none" ? undefined : this.#plc.openSession();
    if (id === undefined) {
      const head = responseHead(functionId, sequence, returnValueOf(createCode < 0 ? createCode : -113), 0x36);
      this.#reply(1, head.u8(0).bytes(FILL).done());
      return;
    }
    this.#id = id;
    this.#state = "created";
    this.#level = this.#plc.level;
    this.#challenge = randomBytes(CHALLENGE_BYTES);
    this.#version = versionStruct(device);
    const answer = responseHead(functionId, sequence, returnValueOf(createCode), 0x36)
      .u8(2)
      .vlq(id)
      .vlq(id + 1);
    this.#reply(1, sessionObject(answer, this.#challenge, this.#version).bytes(FILL).done());
  }

  /** The client sends back the version that it was told; whether the device string in it is left out does not matter. */
  #setUp({ reader, name, functionId, sequence }: RequestHead): void {
    if (name !== "setMultiVariables") throw new WireError(`${name} before the session is set up`);
    if (reader.u32() !== this.#id) throw new WireError("the set-up of another object");
    reader.expect(hex("01018232"), "what is set up");
    if (reader.u8() !== 1) throw new WireError("the number of what is set up");
    const echoed = reader.value();
    reader.expect(Buffer.from([0]), "the end of what is set up");
    reader.expect(QUALIFIER, "the object qualifier");
    reader.expect(FILL, "the end of the request");
    const isRight = echoed.equals(this.#version) || echoed.equals(versionStruct(""));
    this.#plc.noteRequest({
      name,
      sessionId: this.#id,
      sequence,
      integrity: undefined,
      frameBytes: 0,
      items: [],
      object: ATTRIBUTES.version,
    });
    if (!isRight) this.#plc.noteViolation("the set-up of another version");
    const code = isRight ? this.#plc.setUpCode : -2;
    if (code >= 0) this.#state = "open";
    this.#reply(2, responseHead(functionId, sequence, returnValueOf(code)).u8(0).bytes(FILL).done());
  }

  #work(name: FunctionName, head: RequestHead, data: Buffer, frameBytes: number): void {
    const parsed = PARSERS[name](head.reader, this.#id);
    const integrity = head.reader.vlq();
    head.reader.expect(name === "explore" ? Buffer.alloc(5) : FILL, "the end of the request");
    if (head.reader.left > 0) throw new WireError(`${head.reader.left} bytes behind the request`);
    if (!this.#countsOn(SETTERS.has(name) ? "set" : "read", integrity)) {
      this.#connection.fail(`integrity id ${integrity} of ${name}: ${data.toString("hex", 0, 16)}`, -351);
      return;
    }
    const asked: Asked = { ...head, name, integrity };
    const request: PlcRequest = {
      name,
      sessionId: this.#id,
      sequence: head.sequence,
      integrity,
      frameBytes,
      items: parsed.items ?? [],
      object: parsed.object,
    };
    this.#plc.noteRequest(request);
    const odd = this.#plc.misbehave?.(request);
    if (odd && this.#misbehaves(odd, asked)) return;
    const delayMs = odd && "delayMs" in odd ? odd.delayMs : this.#plc.answerDelayMs;
    const answer = () => this.#answer(asked, parsed, odd && "change" in odd ? odd.change : undefined);
    if (delayMs > 0) this.#connection.after(delayMs, answer);
    else answer();
  }

  /** Both counters begin with 0 or 1 and go on by one. */
  #countsOn(which: "read" | "set", integrity: number): boolean {
    const last = this.#counters[which];
    this.#counters[which] = integrity;
    return last === undefined ? integrity <= 1 : integrity === (last + 1) % 2 ** 32;
  }

  /** True: that is all that the client gets. */
  #misbehaves(odd: Misbehaviour, asked: Asked): boolean {
    if ("silent" in odd) return true;
    if ("hangUp" in odd) this.#connection.hangUp(odd.hangUp);
    else if ("endSession" in odd) this.#connection.endSession();
    else if ("raw" in odd) this.#connection.babble(odd.raw);
    else if ("code" in odd) this.#reply(2, refusal(asked, odd.code, odd.error2));
    else if ("cutAfter" in odd) {
      this.#connection.babble(responseHead(asked.functionId, asked.sequence, 0n).done().subarray(0, odd.cutAfter));
      this.#connection.after(1, () => this.#connection.hangUp("rst"));
    } else {
      if ("event" in odd) this.#connection.report(odd.event);
      if ("stale" in odd) this.#reply(2, refusal({ ...asked, sequence: asked.sequence - 1 }, 0));
      return false;
    }
    return true;
  }

  #answer(asked: Asked, parsed: Parsed, change: ((answer: Buffer) => Buffer) | undefined): void {
    if (!this.isOpen) return;
    const answer = this.#answerTo(asked, parsed, change !== undefined);
    if (answer) this.#reply(2, change ? change(answer) : answer);
  }

  /** Undefined: the answer is on its way, piece by piece. */
  #answerTo(asked: Asked, parsed: Parsed, asOne: boolean): Buffer | undefined {
    const { name, functionId, sequence } = asked;
    const isAboutLogin = name === "getVarSubStreamed" || name === "setVariable" || name === "deleteObject";
    if (this.#isDelegitimated && !isAboutLogin) return refusal(asked, this.#plc.delegitimatedCode);
    switch (name) {
      case "getMultiVariables": {
        const read = readItems(this.#plc, parsed.items ?? [], this.#level < NO_ACCESS);
        if (typeof read === "number") return refusal(asked, read);
        return ended(responseHead(functionId, sequence, returnValueOf(read.failed > 0 ? SOME_FAILED : 0)).bytes(read.bytes), asked);
      }
      case "explore":
        return this.#explore(asked, parsed, asOne);
      case "getVarSubStreamed":
        return this.#attribute(asked, parsed.object);
      case "setVariable":
        return ended(responseHead(functionId, sequence, returnValueOf(this.#logIn(asked, parsed))), asked);
      case "deleteObject":
        this.#plc.counts.deleted++;
        this.#state = "deleted";
        return responseHead(functionId, sequence, returnValueOf(SESSION_ENDED)).u32(this.#id).bytes(FILL).done();
      default:
        this.#plc.noteViolation(`${name}, which changes something`);
        return refusal(asked, NOT_ALLOWED);
    }
  }

  #explore(asked: Asked, { object = 0, attributes = [], filter }: Parsed, asOne: boolean): Buffer | undefined {
    if (this.#level >= NO_ACCESS) return refusal(asked, -100);
    const { listBytes, tellsStamps: stamps, program } = this.#plc;
    const objects = explored(program, { id: object, attributes, filter, listBytes, stamps });
    if (!objects) return refusal(asked, -12);
    const { functionId, sequence, integrity } = asked;
    const head = responseHead(functionId, sequence, 0n)
      .u32(object)
      .vlq((sequence + integrity) >>> 0)
      .done();
    if (asOne) return Buffer.concat([head, ...objects, FILL]);
    this.#connection.sendPieces(2, inTurn([head], objects, [FILL]));
    return undefined;
  }

  /** An attribute of the session object. */
  #attribute(asked: Asked, attribute: number | undefined): Buffer {
    const head = (code: number) => responseHead(asked.functionId, asked.sequence, returnValueOf(code)).u8(0);
    if (attribute === ATTRIBUTES.level) return ended(head(0).u8(0, 4).vlq(this.#level), asked);
    if (attribute !== ATTRIBUTES.challenge) return ended(head(-32).u8(0, 0), asked);
    this.#challenge = randomBytes(CHALLENGE_BYTES);
    return ended(head(0).hex(USINT_ARRAY).bytes(this.#challenge), asked);
  }

  /** The code that it is answered with. */
  #logIn({ integrity }: Asked, { object, value }: Parsed): number {
    const { legitimation, wrongPasswordCode, levelOfPassword, counts } = this.#plc;
    if (object !== (legitimation === "legacy" ? ATTRIBUTES.answer : ATTRIBUTES.legitimate)) {
      if (object !== ATTRIBUTES.answer && object !== ATTRIBUTES.legitimate)
        this.#plc.noteViolation(`attribute ${object} is set with integrity ${integrity}`);
      return this.#plc.unknownLoginCode;
    }
    const isRight = value !== undefined && this.#isRight(value);
    // A challenge is good for one attempt.
    this.#challenge = randomBytes(CHALLENGE_BYTES);
    counts[isRight ? "logins" : "wrongPasswords"]++;
    if (!isRight) return wrongPasswordCode;
    this.#isDelegitimated = false;
    this.#level = levelOfPassword;
    return LEGITIMATED[levelOfPassword] ?? 0;
  }

  /** The key is the sum of what both ends of TLS know, summed again with each attempt. */
  #isRight(value: Buffer): boolean {
    if (this.#plc.legitimation === "legacy") return isRightAnswer(value, this.#challenge, this.#plc.password);
    this.#key = nextKey(this.#key ?? this.#connection.exporter(EXPORTER.label, EXPORTER.bytes));
    return isRightLogin(value, this.#key, this.#challenge, this.#plc);
  }
}

/** What ends an answer. */
const ended = (answer: Writer, { sequence, integrity }: Asked): Buffer =>
  answer
    .vlq((sequence + integrity) >>> 0)
    .bytes(FILL)
    .done();

/** An answer to the whole request, without anything in it; `error2`: as an answer of no function. */
function refusal(asked: Asked, code: number, error2?: true): Buffer {
  const answer = responseHead(error2 ? ERROR2 : asked.functionId, asked.sequence, returnValueOf(code));
  if (!error2) emptyBody(answer, asked.name);
  return ended(answer, asked);
}

/** What an answer of this function has in the place of values where it has none. */
function emptyBody(answer: Writer, name: FunctionName): void {
  if (name === "getMultiVariables") answer.u8(0, 0);
  else if (name === "explore") answer.u32(0);
  else if (name === "getVarSubStreamed") answer.u8(0, 0, 0);
}

function* inTurn(...lists: readonly Iterable<Buffer>[]): Generator<Buffer> {
  for (const list of lists) yield* list;
}
