import type { ConfirmForm } from "../../simulators/kit/cotp.ts";
import { DeviceServer } from "../../simulators/kit/device-server.ts";
import type { Listening } from "../simulator.ts";
import { PlcConnection } from "./simulator-connection.ts";
import type { ErrorForm, ItemRequest } from "./simulator-frames.ts";
import { S7Memory } from "./simulator-memory.ts";

/** How a CPU refuses a connection: COTP's disconnect, an end or a reset of TCP, or no answer at all. */
export type Refusal = "disconnect" | "fin" | "rst" | "silent";
/** The first byte of the called TSAP: programming device, operator panel, S7 basic; `other` for what is none of them. */
export type ConnectionType = "pg" | "op" | "basic" | "other";

/** A read job as it came. */
export interface ReadJob {
  readonly reference: number;
  readonly items: readonly ItemRequest[];
  /** Bytes of its PDU. */
  readonly bytes: number;
}

/** What the CPU does with one read job instead of answering well. */
export type Misbehaviour =
  | { readonly error: number }
  | { readonly silent: true }
  /** The good answer, late. */
  | { readonly delayMs: number }
  /** The good answer, changed: an S7 PDU. */
  | { readonly change: (pdu: Buffer) => Buffer }
  | { readonly hangUp: "fin" | "rst" };

export interface S7PlcOptions extends Listening {
  readonly memory?: S7Memory;
  /** Before each read job; ms since the start. Values that change by themselves are put here. */
  readonly update?: (memory: S7Memory, ms: number) => void;
}

const KEPT_JOBS = 1000;
const KEPT_VIOLATIONS = 50;

/**
 * A CPU that speaks S7 over ISO on TCP. Every public field is its state and may be set while it runs: what is agreed when a connection
 * opens (sizes, jobs, slots) holds for the next connections, everything else for the next job.
 */
export class S7Plc {
  readonly memory: S7Memory;

  /** S7 PDU that it grants at most, its header included. */
  pduBytes = 480;
  /** Jobs at once that it grants at most. */
  jobs = 8;
  /** Items of one job that it takes. */
  maxItems = 20;
  /** More items than that: refused with an error of the job, or answered up to there without a word. */
  overItems: "refuse" | "cut" = "refuse";
  /** Every read job is refused with this error: JOB_ERRORS. */
  readError: number | undefined;
  errorForm: ErrorForm = "ack-data";
  /** Setting up the communication is refused with this error. */
  setupError: number | undefined;
  /** A read job ends its connection with a reset: how some CPUs forbid PUT/GET. */
  resetsOnRead = false;

  /** Racks and slots that it takes connections for, as rack × 32 + slot; empty: any. Raw TSAPs are compared by their low byte too. */
  positions: ReadonlySet<number> = new Set();
  wrongTsap: Refusal = "disconnect";
  /** Connections at once by type, and all together; absent: any number. Those that are open stay. */
  readonly slots: Partial<Record<ConnectionType | "all", number>> = {};
  slotsTaken: Refusal = "disconnect";

  /** COTP packet that it grants at most, from COTP's length byte on: a power of two from 128 to 8192. */
  packetBytes = 1024;
  confirm: ConfirmForm = "whole";
  /** Its answers come in COTP packets with at most so many bytes of payload. */
  fragmentBytes = Number.POSITIVE_INFINITY;
  /** An empty fragment goes before each answer. */
  acknowledgesFast = false;
  /** An item of odd length that is the last gets a fill byte too. */
  fillsLast = false;

  answerDelayMs = 0;
  /** What comes within 5 ms on one connection is answered backwards. */
  answersBackwards = false;
  /** Asked for every read job. */
  misbehave: ((job: ReadJob) => Misbehaviour | undefined) | undefined;

  readonly counts = { accepted: 0, refused: 0, setups: 0, jobs: 0, items: 0, payloadBytes: 0, errors: 0 };
  /** The last read jobs, the oldest first. */
  readonly lastJobs: ReadJob[] = [];
  /** What a client did that no right one does, in words: functions that do not read, more than was agreed. */
  readonly violations: string[] = [];
  /** Most jobs of one connection that waited for their answers at once. */
  mostInFlight = 0;

  readonly #server: DeviceServer<PlcConnection>;
  readonly #began = performance.now();
  readonly #update: S7PlcOptions["update"];

  constructor({ memory = new S7Memory(), update }: S7PlcOptions) {
    this.memory = memory;
    this.#update = update;
    this.#server = new DeviceServer((socket) => {
      this.counts.accepted++;
      return new PlcConnection(this, socket);
    });
  }

  listen(where: Listening): Promise<void> {
    return this.#server.listen(where);
  }

  get port(): number {
    return this.#server.port;
  }

  /** TCP connections that are open now. */
  connections(): number {
    return this.#server.connections.size;
  }

  /** Connections whose connect request was confirmed, by type or all. */
  confirmed(type?: ConnectionType): number {
    let count = 0;
    for (const connection of this.#server.connections)
      if (connection.type !== undefined && (type === undefined || connection.type === type)) count++;
    return count;
  }

  /** True: there is no slot left for another connection of this type. */
  isFull(type: ConnectionType): boolean {
    const { all = Number.POSITIVE_INFINITY, [type]: own = Number.POSITIVE_INFINITY } = this.slots;
    return this.confirmed() >= all || this.confirmed(type) >= own;
  }

  /** Ends all connections, as a restart of the CPU or of the network does. */
  drop(how: "fin" | "rst" = "rst"): void {
    this.#server.drop(how);
  }

  /** Loads other blocks: what is not among them is gone. Connections stay, as with a download in RUN. */
  download(blocks: Readonly<Record<`DB${number}`, Buffer>>): void {
    for (const name of [...this.memory.areas.keys()]) if (name.startsWith("DB")) this.memory.areas.delete(name);
    for (const [name, bytes] of Object.entries(blocks)) this.memory.areas.set(name, bytes);
  }

  /** Takes a read job into the books; called by connections. */
  noteJob(job: ReadJob): void {
    this.counts.jobs++;
    this.counts.items += job.items.length;
    this.lastJobs.push(job);
    if (this.lastJobs.length > KEPT_JOBS) this.lastJobs.shift();
    this.#update?.(this.memory, performance.now() - this.#began);
  }

  noteViolation(words: string): void {
    this.violations.push(words);
    if (this.violations.length > KEPT_VIOLATIONS) this.violations.shift();
  }

  /** Forgets counts, jobs and violations. */
  resetCounts(): void {
    Object.assign(this.counts, { accepted: 0, refused: 0, setups: 0, jobs: 0, items: 0, payloadBytes: 0, errors: 0 });
    this.lastJobs.length = 0;
    this.violations.length = 0;
    this.mostInFlight = 0;
  }

  close(): Promise<void> {
    return this.#server.close();
  }
}

export async function startS7Plc(options: S7PlcOptions = {}): Promise<S7Plc> {
  const plc = new S7Plc(options);
  await plc.listen(options);
  return plc;
}
