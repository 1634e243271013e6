import type net from "node:net";
import {
  type ConnectRequest,
  confirmOf,
  DATA_HEADER,
  dataPacket,
  dataPackets,
  disconnectOf,
  errorPacket,
  type Packet,
  packetCut,
  parsePacket,
} from "../../simulators/kit/cotp.ts";
import { FramedConnection } from "../../simulators/kit/framed-connection.ts";
import { ackData, errorAnswer, itemBytes, itemsOf, JOB_ERRORS, type Job, parseJob } from "./simulator-frames.ts";
import type { ConnectionType, Misbehaviour, ReadJob, Refusal, S7Plc } from "./simulator-plc.ts";

const [SETUP, READ] = [0xf0, 0x04];
const TYPES: Readonly<Record<number, ConnectionType>> = { 1: "pg", 2: "op", 3: "basic" };
/** The smallest and the largest TPKT packet. */
const PACKET_BYTES = [5, 8192] as const;
/** Without a size in the connect request. */
const USUAL_PACKET_BYTES = 1024;
/** What old communication processors send for each packet that they took. */
const EMPTY_FRAGMENT = dataPacket(Buffer.alloc(0), false);
const [SMALLEST_PDU, LARGEST_JOINED] = [64, 65_536];
/** X.224, 13.5.3: address unknown; congestion at the TSAP (here: all slots taken). */
const REASONS = { unknownAddress: 3, full: 1 } as const;
const BACKWARDS_AFTER_MS = 5;

interface Granted {
  readonly pduBytes: number;
  readonly jobs: number;
}

/** One connection at the CPU's end: connect, set up, read. */
export class PlcConnection extends FramedConnection {
  /** Undefined until its connect request is confirmed. */
  type: ConnectionType | undefined;

  readonly #plc: S7Plc;
  #fragments: Buffer[] = [];
  #packetBytes = USUAL_PACKET_BYTES;
  #granted: Granted | undefined;
  #inFlight = 0;
  /** Answers that wait to be sent backwards. */
  #held: Buffer[] = [];

  constructor(plc: S7Plc, socket: net.Socket) {
    super(socket, packetCut(...PACKET_BYTES));
    this.#plc = plc;
  }

  protected override onGarbage(): void {
    this.#violate("bytes that are not TPKT");
    this.hangUp("rst");
  }

  protected override onFrame(bytes: Buffer): void {
    const packet = parsePacket(bytes);
    if (packet?.kind === "connect" && this.type === undefined) this.#onConnect(packet);
    else if (packet?.kind === "data" && this.type !== undefined) this.#onFragment(packet);
    else if (packet?.kind === "disconnect") this.hangUp("fin");
    else {
      this.#violate(`the COTP packet ${bytes.toString("hex", 4, 12)} at this moment`);
      this.write(errorPacket(packet ? 2 : 1));
      this.hangUp("fin");
    }
  }

  #violate(words: string): void {
    this.#plc.noteViolation(words);
  }

  #onConnect(request: ConnectRequest): void {
    const called = request.called.length === 2 ? request.called.readUInt16BE(0) : 0;
    const type = TYPES[called >> 8] ?? "other";
    const { positions } = this.#plc;
    if (positions.size > 0 && !positions.has(called & 0xff)) {
      this.#refuse(request.reference, this.#plc.wrongTsap, REASONS.unknownAddress);
      return;
    }
    if (this.#plc.isFull(type)) {
      this.#refuse(request.reference, this.#plc.slotsTaken, REASONS.full);
      return;
    }
    this.type = type;
    const askedBytes = request.sizeCode === undefined ? USUAL_PACKET_BYTES : 2 ** (request.sizeCode & 0x0f);
    this.#packetBytes = Math.min(askedBytes, this.#plc.packetBytes);
    this.write(confirmOf(request, Math.log2(this.#packetBytes), this.#plc.confirm));
  }

  #refuse(reference: number, how: Refusal, reason: number): void {
    this.#plc.counts.refused++;
    if (how === "disconnect") this.write(disconnectOf(reference, reason));
    if (how === "silent") this.isDeaf = true;
    else this.hangUp(how === "rst" ? "rst" : "fin");
  }

  #onFragment({ payload, isLast, packetBytes }: Packet & { kind: "data" }): void {
    if (packetBytes > this.#packetBytes) this.#violate(`a COTP packet of ${packetBytes} bytes where ${this.#packetBytes} are agreed`);
    this.#fragments.push(payload);
    if (this.#fragments.reduce((sum, { length }) => sum + length, 0) > LARGEST_JOINED) this.hangUp("rst");
    if (!isLast) return;
    const pdu = Buffer.concat(this.#fragments);
    this.#fragments = [];
    // Fast acknowledges of the client.
    if (pdu.length > 0) this.#onPdu(pdu);
  }

  #onPdu(pdu: Buffer): void {
    const job = parseJob(pdu);
    if (!job) {
      this.#violate(`a PDU that is not a job: ${pdu.toString("hex", 0, 16)}`);
      this.hangUp("rst");
    } else if (job.functionCode === SETUP) this.#setUp(job);
    else if (!this.#granted) {
      this.#violate(`function ${job.functionCode} before the communication was set up`);
      this.hangUp("rst");
    } else if (job.functionCode === READ) this.#onRead(job, pdu.length, this.#granted);
    else {
      this.#violate(`function ${job.functionCode}, which does not read`);
      this.#send(errorAnswer(job, JOB_ERRORS.serviceForbidden, this.#plc.errorForm));
    }
  }

  #setUp(job: Job): void {
    this.#plc.counts.setups++;
    const { setupError, errorForm } = this.#plc;
    if (setupError !== undefined || job.parameter.length !== 8) {
      this.#send(errorAnswer(job, setupError ?? JOB_ERRORS.wrongFrame, errorForm));
      return;
    }
    const jobs = (asked: number) => Math.max(1, Math.min(asked, this.#plc.jobs));
    const [calling, called] = [jobs(job.parameter.readUInt16BE(2)), jobs(job.parameter.readUInt16BE(4))];
    const pduBytes = Math.max(SMALLEST_PDU, Math.min(job.parameter.readUInt16BE(6), this.#plc.pduBytes));
    this.#granted = { pduBytes, jobs: Math.min(calling, called) };
    const parameter = Buffer.alloc(8);
    parameter[0] = SETUP;
    parameter.writeUInt16BE(calling, 2);
    parameter.writeUInt16BE(called, 4);
    parameter.writeUInt16BE(pduBytes, 6);
    this.#send(ackData(job.reference, parameter));
  }

  #onRead(job: Job, bytes: number, granted: Granted): void {
    const items = itemsOf(job);
    const read: ReadJob = { reference: job.reference, items: items ?? [], bytes };
    this.#plc.noteJob(read);
    this.#inFlight++;
    this.#plc.mostInFlight = Math.max(this.#plc.mostInFlight, this.#inFlight);
    if (this.#inFlight > granted.jobs) this.#violate(`${this.#inFlight} jobs at once where ${granted.jobs} are agreed`);
    if (this.#plc.resetsOnRead) {
      this.hangUp("rst");
      return;
    }
    const odd = this.#plc.misbehave?.(read);
    if (odd && "hangUp" in odd) {
      this.hangUp(odd.hangUp);
      return;
    }
    if (odd && "silent" in odd) return;
    const error = odd && "error" in odd ? odd.error : this.#plc.readError;
    if (error !== undefined) this.#plc.counts.errors++;
    const pdu = error === undefined ? this.#answerTo(job, read, granted) : errorAnswer(job, error, this.#plc.errorForm);
    this.#sendLater(odd && "change" in odd ? odd.change(pdu) : pdu, odd);
  }

  /** The answer, or the error of the whole job where it is more than was agreed. */
  #answerTo(job: Job, { items, bytes }: ReadJob, { pduBytes }: Granted): Buffer {
    const { maxItems, overItems, memory, errorForm, fillsLast } = this.#plc;
    const wrong = (words: string): Buffer => {
      this.#violate(words);
      this.#plc.counts.errors++;
      return errorAnswer(job, JOB_ERRORS.wrongFrame, errorForm);
    };
    if (items.length === 0) return wrong("a read job without items that can be understood");
    if (bytes > pduBytes) return wrong(`a job of ${bytes} bytes where ${pduBytes} are agreed`);
    if (items.length > maxItems && overItems === "refuse") {
      this.#plc.counts.errors++;
      return errorAnswer(job, JOB_ERRORS.wrongFrame, errorForm);
    }
    const answered = items.slice(0, maxItems).map((item) => memory.read(item));
    const data = itemBytes(answered, fillsLast);
    const pdu = ackData(job.reference, [READ, answered.length], data);
    if (pdu.length - (fillsLast ? 1 : 0) > pduBytes) return wrong(`a job whose answer of ${pdu.length} bytes is above ${pduBytes}`);
    this.#plc.counts.payloadBytes += answered.reduce((sum, item) => sum + item.bytes.length, 0);
    return pdu;
  }

  #sendLater(pdu: Buffer, odd: Misbehaviour | undefined): void {
    const delayMs = odd && "delayMs" in odd ? odd.delayMs : this.#plc.answerDelayMs;
    const send = () => {
      if (this.#plc.answersBackwards) this.#hold(pdu);
      else this.#answer(pdu);
    };
    if (delayMs <= 0) send();
    else this.after(delayMs, send);
  }

  #hold(pdu: Buffer): void {
    this.#held.push(pdu);
    if (this.#held.length > 1) return;
    this.after(BACKWARDS_AFTER_MS, () => {
      const held = this.#held.reverse();
      this.#held = [];
      for (const one of held) this.#answer(one);
    });
  }

  #answer(pdu: Buffer): void {
    this.#inFlight--;
    this.#send(pdu);
  }

  #send(pdu: Buffer): void {
    const packets = dataPackets(pdu, Math.min(this.#packetBytes - DATA_HEADER, this.#plc.fragmentBytes));
    this.write(this.#plc.acknowledgesFast ? Buffer.concat([EMPTY_FRAGMENT, packets]) : packets);
  }
}
