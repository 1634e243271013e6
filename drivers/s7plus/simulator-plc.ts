import { createSecureContext, type SecureContext } from "node:tls";
import { DeviceServer } from "../../simulators/kit/device-server.ts";
import type { Listening } from "../simulator.ts";
import { makePlcCertificate, type PlcCertificate } from "./simulator-certificate.ts";
import { PlcConnection } from "./simulator-connection.ts";
import type { EventKind, FunctionName } from "./simulator-messages.ts";
import { BLOCK_AREA, type Download, FIRST_NUMBERING, type Numbering, type ProgramDeclaration, S7PlusProgram } from "./simulator-program.ts";

/** How a CPU refuses a connection: COTP's disconnect, an end or a reset of TCP, or no answer at all. */
export type Refusal = "disconnect" | "fin" | "rst" | "silent";

/**
 * What becomes of the request for TLS and of TLS itself. `unknown-service`: as firmware answers that knows none; `no-tls`: refused with -507;
 * `reset`: no answer to TLS's first message but a reset; `alert`: one that TLS itself refuses; `old-tls`: TLS 1.2 at most.
 */
export type SslAnswer = "tls" | "unknown-service" | "no-tls" | "reset" | "alert" | "old-tls" | "silent";

/** One variable of a read. */
export interface ItemRequest {
  readonly crc: number;
  readonly area: number;
  readonly subArea: number;
  readonly lids: readonly number[];
}

/** A request as it came. */
export interface PlcRequest {
  readonly name: FunctionName;
  readonly sessionId: number;
  readonly sequence: number;
  /** Absent before the session is set up. */
  readonly integrity: number | undefined;
  /** Of its longest frame, header and trailer among them. */
  readonly frameBytes: number;
  /** Of a read. */
  readonly items: readonly ItemRequest[];
  /** What an explore request names, or the attribute that is read or set. */
  readonly object: number | undefined;
}

/** What the CPU does with one request instead of answering well. */
export type Misbehaviour =
  /** The whole request is answered with this code; `error2`: as an answer of no function. */
  | { readonly code: number; readonly error2?: true }
  | { readonly silent: true }
  /** The good answer, late. */
  | { readonly delayMs: number }
  /** The good answer, changed: from its opcode on. */
  | { readonly change: (answer: Buffer) => Buffer }
  /** These bytes inside TLS in the place of an answer. */
  | { readonly raw: Buffer }
  /** This many bytes of the answer, then a reset. */
  | { readonly cutAfter: number }
  /** An answer to the request before goes first. */
  | { readonly stale: true }
  | { readonly event: EventKind }
  /** The CPU reports the end of the session and closes. */
  | { readonly endSession: true }
  | { readonly hangUp: "fin" | "rst" };

export interface S7PlusPlcOptions extends Listening {
  readonly program?: ProgramDeclaration;
  readonly certificate?: PlcCertificate;
  /** Before each read; ms since the start. Values that change by themselves are put here. */
  readonly update?: (program: S7PlusProgram, ms: number) => void;
}

const KEPT_REQUESTS = 1000;
const KEPT_VIOLATIONS = 50;
const FIRST_SESSION = 0x70000c88;
const SHIFT = 32;

/** Made once: what is tested is never who made it. */
let ownCertificate: PlcCertificate | undefined;

const NO_COUNTS = { accepted: 0, refused: 0, handshakes: 0, created: 0, deleted: 0, logins: 0, wrongPasswords: 0, items: 0, itemErrors: 0 };

/**
 * A CPU that speaks S7CommPlus over TLS. Every public field is its state and may be set while it runs: what is agreed when a connection
 * opens (TSAP, TLS, sessions, level) holds for the next connections, everything else for the next request.
 */
export class S7PlusPlc {
  program: S7PlusProgram;

  /** Called TSAPs that it takes connections for. */
  tsaps: ReadonlySet<string> = new Set(["SIMATIC-ROOT-HMI", "SIMATIC-ROOT-ES"]);
  wrongTsap: Refusal = "disconnect";
  confirm: "whole" | "bare" = "whole";
  /** 2 to this power: bytes of a COTP packet that it grants at most. */
  packetSizeCode = 10;
  /** Bytes of TLS in one data packet, at most. */
  payloadBytes = 1017;
  /** An empty data packet goes before each other one. */
  sendsEmptyPackets = false;
  /** Data packets say that more is to come, also where nothing does. */
  leavesMessagesOpen = false;

  ssl: SslAnswer = "tls";
  /** A SystemEvent goes before the answer to the request for TLS. */
  eventBeforeSsl = false;

  /** Order number and firmware, as attribute 319 has them. */
  device = "1;6ES7 511-1AK02-0AB0;V2.9";
  /** Code of the answer to the creation of a session; 17 is a good one. */
  createCode = 17;
  /** Code of the answer to the set-up of a session. */
  setUpCode = 0;
  maxSessions = Number.POSITIVE_INFINITY;
  /** A session whose connection ended without its deletion keeps its place for so long. */
  orphanMs = 0;

  /** Effective protection level of one who has not logged in: 1 is full access, 3 HMI access, 4 none. */
  level = 1;
  /** Level after logging in. */
  levelOfPassword = 1;
  legitimation: "legacy" | "new" = "legacy";
  password: string | undefined;
  /** Passwords by user name; without an access level's password only these are taken. */
  readonly users = new Map<string, string>();
  /** What a wrong password is answered with: 22, -118 or another refusal. */
  wrongPasswordCode = 22;
  /** To a log-in of the other kind than `legitimation`. */
  unknownLoginCode = -107;
  /** What a session whose log-in was taken back is answered with. */
  delegitimatedCode = -118;

  /** Items of one read that it takes. */
  maxReadItems = 100;
  /** What it says that it takes, where that is something else. */
  toldReadItems: number | undefined;
  /** The limits cannot be read. */
  hidesLimits = false;
  /** A longer frame ends the connection. Measured with PLCSIM Advanced: 860 is taken, 1060 is not. */
  maxFrameBytes = 1000;
  /** Clients may read what HMI devices may not. */
  readsHidden = false;
  /** Arrays can be read as a whole. */
  readsArrays = true;

  /** Data bytes of a fragment of an answer, at most. */
  fragmentBytes = 987;
  /** All fragments of an answer go to TLS in one write. */
  joinsFragments = false;
  /** Bytes of one block in lists of types and names, at most. */
  listBytes = 1000;
  /** What is explored comes in pieces of so many bytes with a pause after each. */
  explorePause: { readonly bytes: number; readonly ms: number } | undefined;
  /** Objects say when they were changed. */
  tellsStamps = true;

  answerDelayMs = 0;
  /** Gets what clients send inside TLS, as it comes. */
  onHeard: ((bytes: Buffer) => void) | undefined;
  /** Asked for every request in a session. */
  misbehave: ((request: PlcRequest) => Misbehaviour | undefined) | undefined;
  /** Code of an item that cannot be read; `lost`: it is not in the answer. Undefined: it is read. `name` is undefined where there is none. */
  refuse: ((item: ItemRequest, name: string | undefined) => number | "lost" | undefined) | undefined;

  readonly counts = { ...NO_COUNTS };
  /** Requests by function. */
  readonly requests: Partial<Record<FunctionName, number>> = {};
  /** Those of `requests.explore` that name one data block, as who looks at its time stamps does. */
  blockExplores = 0;
  /** The last requests, the oldest first. */
  readonly lastRequests: PlcRequest[] = [];
  /** What a client did that no right one does, in words: requests that change something, counters that jump. */
  readonly violations: string[] = [];
  /** Bytes inside TLS to clients. */
  sentBytes = 0;

  readonly #server: DeviceServer<PlcConnection>;
  readonly #orphans = new Set<NodeJS.Timeout>();
  readonly #began = performance.now();
  readonly #update: S7PlusPlcOptions["update"];
  #certificate: PlcCertificate;
  /** For TLS, by what becomes of it. */
  readonly #contexts = new Map<SslAnswer, SecureContext>();
  #nextSession = FIRST_SESSION;
  #away: NodeJS.Timeout | undefined;

  constructor({ program = {}, certificate, update }: S7PlusPlcOptions) {
    this.program = new S7PlusProgram(program);
    this.#update = update;
    ownCertificate ??= makePlcCertificate();
    this.#certificate = certificate ?? ownCertificate;
    this.#server = new DeviceServer((socket) => {
      this.counts.accepted++;
      const connection = new PlcConnection(this, socket);
      if (this.#away) connection.hangUp("rst");
      return connection;
    });
  }

  listen(where: Listening): Promise<void> {
    return this.#server.listen(where);
  }

  get port(): number {
    return this.#server.port;
  }

  /** For TLS as it is offered now. Called by connections. */
  context(): SecureContext {
    const kept = this.#contexts.get(this.ssl);
    if (kept) return kept;
    const version = this.ssl === "old-tls" ? "TLSv1.2" : "TLSv1.3";
    // No client hello that is taken offers P-521 alone.
    const ecdhCurve = this.ssl === "alert" ? "P-521" : "X25519";
    const made = createSecureContext({ ...this.#certificate, minVersion: version, maxVersion: version, ecdhCurve });
    this.#contexts.set(this.ssl, made);
    return made;
  }

  /** The next connections get this certificate. */
  set certificate(certificate: PlcCertificate) {
    this.#certificate = certificate;
    this.#contexts.clear();
  }

  /** TCP connections that are open now. */
  connections(): number {
    return this.#server.connections.size;
  }

  /** Sessions that are open now, without those whose connection has gone. */
  sessions(): number {
    let count = 0;
    for (const { session } of this.#server.connections) if (session?.isOpen) count++;
    return count;
  }

  /** Sessions whose connection ended without their deletion, and that still have their place. */
  orphans(): number {
    return this.#orphans.size;
  }

  /** An id for a new session; undefined: all places are taken. Called by connections. */
  openSession(): number | undefined {
    if (this.sessions() + this.#orphans.size >= this.maxSessions) return undefined;
    this.counts.created++;
    this.#nextSession += 2;
    return this.#nextSession;
  }

  /** A connection ended, and its session had not been deleted. Called by connections. */
  orphan(): void {
    if (this.orphanMs <= 0) return;
    const timer = setTimeout(() => this.#orphans.delete(timer), this.orphanMs);
    this.#orphans.add(timer);
  }

  /** Ends all connections. */
  drop(how: "fin" | "rst" = "rst"): void {
    this.#server.drop(how);
  }

  /** Reports the end of each session and closes, as a CPU does that needs the place. */
  endSessions(): void {
    for (const connection of this.#server.connections) connection.endSession();
  }

  /** The level of one who has not logged in, for the sessions that are open too. */
  setLevel(level: number): void {
    this.level = level;
    for (const { session } of this.#server.connections) session?.setLevel(level);
  }

  /** Takes back what was gained by logging in. */
  delegitimate(): void {
    for (const { session } of this.#server.connections) session?.delegitimate();
  }

  /** Reports something to all sessions. */
  report(kind: EventKind): void {
    for (const connection of this.#server.connections) connection.report(kind);
  }

  /** Sends bytes to all clients, inside TLS where it has begun. */
  babble(bytes: Buffer): void {
    for (const connection of this.#server.connections) connection.babble(bytes);
  }

  /** Ends all connections and takes none for so long; sessions are forgotten. */
  restart(awayMs = 0): void {
    this.drop();
    for (const timer of this.#orphans) clearTimeout(timer);
    this.#orphans.clear();
    clearTimeout(this.#away);
    this.#away = undefined;
    if (awayMs <= 0) return;
    this.#away = setTimeout(() => {
      this.#away = undefined;
    }, awayMs);
  }

  /** Loads a program; the present one again where none is given. Connections stay, as with a download in RUN. Values stay by their names. */
  download(declaration: ProgramDeclaration = this.program.declaration, { ids = "kept", ...how }: Download = {}): void {
    const { first, turn } = this.program.numbering;
    const numbering: Readonly<Record<NonNullable<Download["ids"]>, Numbering>> = {
      kept: { first, turn },
      first: FIRST_NUMBERING,
      shifted: { first: first + SHIFT, turn },
      turned: { first, turn: turn + 1 },
    };
    this.program = new S7PlusProgram(declaration, this.program, numbering[ids], how);
  }

  /** Takes a request into the books; called by sessions. */
  noteRequest(request: PlcRequest): void {
    this.requests[request.name] = (this.requests[request.name] ?? 0) + 1;
    if (request.name === "explore" && (request.object ?? 0) >= BLOCK_AREA) this.blockExplores++;
    this.counts.items += request.items.length;
    this.lastRequests.push(request);
    if (this.lastRequests.length > KEPT_REQUESTS) this.lastRequests.shift();
    if (request.name === "getMultiVariables") this.#update?.(this.program, performance.now() - this.#began);
  }

  noteViolation(words: string): void {
    this.violations.push(words);
    if (this.violations.length > KEPT_VIOLATIONS) this.violations.shift();
  }

  /** Forgets counts, requests and violations. */
  resetCounts(): void {
    Object.assign(this.counts, NO_COUNTS);
    for (const name of Object.keys(this.requests)) delete this.requests[name as FunctionName];
    this.blockExplores = 0;
    this.lastRequests.length = 0;
    this.violations.length = 0;
    this.sentBytes = 0;
  }

  close(): Promise<void> {
    this.restart();
    return this.#server.close();
  }
}

export async function startS7PlusPlc(options: S7PlusPlcOptions = {}): Promise<S7PlusPlc> {
  const plc = new S7PlusPlc(options);
  await plc.listen(options);
  return plc;
}
