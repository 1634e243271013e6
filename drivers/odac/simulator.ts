import type { Socket } from "node:net";
import { DeviceServer } from "../../simulators/kit/device-server.ts";
import { type Cut, FramedConnection } from "../../simulators/kit/framed-connection.ts";
import type { Value } from "../../src/model/value.ts";
import type { Listening, Simulator } from "../simulator.ts";

/**
 * A controller that answers polls of ANSI X3.28, subcategory 2.5, A4, as the shipped profile has them: EOT G G U U CODE ENQ, answered by
 * STX CODE text ETX BCC, or by EOT where there is no such code. It shares nothing with the driver. Which codes a real one has is not known.
 */
export interface OdacSimulator extends Simulator {
  /** Text of each parameter, by its code; tests and the demo change it. */
  readonly parameters: Map<string, string | (() => string)>;
  /** Requests that were taken, in words. */
  readonly polls: readonly string[];
  /** What is sent in the place of the next answer; undefined: the answer. */
  nextAnswer: Buffer | undefined;
  /** Ends all connections. */
  drop(): void;
}

const [STX, EOT, ENQ] = [0x02, 0x04, 0x05];
/** Without its EOT and ENQ. */
const POLL = /^(\d)\1(\d)\2([A-Za-z0-9_]{1,8})$/;
/** A poll is no longer than this. */
const MAX_POLL_BYTES = 32;
/** Bytes without an ENQ are kept up to here. */
const MAX_HELD_BYTES = 1024;
const KEPT_POLLS = 1000;

const VARIABLES: readonly { readonly address: string; readonly type: string; readonly value: Value; readonly text: string }[] = [
  { address: "PV", type: "float64", value: 215.5, text: "215.5" },
  { address: "SP", type: "float64", value: 220, text: " 220." },
  { address: "OP", type: "float64", value: -12.25, text: "-12.25" },
  { address: "CYC", type: "uint32", value: 48_231, text: "48231" },
  { address: "SW", type: "uint16", value: 0x1a2b, text: ">1A2B" },
  { address: "RUN", type: "bool", value: true, text: "1" },
  { address: "ID", type: "string", value: "MOULD 7", text: "MOULD 7" },
];

export async function startSimulator({
  group = 0,
  unit = 0,
  ...listening
}: Listening & { group?: number; unit?: number } = {}): Promise<OdacSimulator> {
  const parameters = new Map<string, string | (() => string)>(VARIABLES.map(({ address, text }) => [address, text]));
  const polls: string[] = [];
  const simulator = { nextAnswer: undefined as Buffer | undefined };
  const answerTo = (poll: string): Buffer | undefined => {
    const [, pollGroup, pollUnit, code = ""] = POLL.exec(poll) ?? [];
    if (Number(pollGroup) !== group || Number(pollUnit) !== unit) return undefined;
    polls.push(code);
    polls.splice(0, polls.length - KEPT_POLLS);
    const kept = parameters.get(code);
    const text = typeof kept === "function" ? kept() : kept;
    const answer = simulator.nextAnswer ?? (text === undefined ? Buffer.from([EOT]) : blockOf(code + text));
    simulator.nextAnswer = undefined;
    return answer;
  };
  const server = new DeviceServer((socket) => new PollConnection(socket, answerTo));
  await server.listen(listening);
  return Object.assign(simulator, {
    port: server.port,
    details: (host: string, port: number) => ({ type: "odac", host, port, protocol_override: null }),
    parameters,
    polls,
    variables: VARIABLES.map(({ address, type, value }) => ({ address, type, value })),
    missing: { address: "XX", type: "float64" },
    malformed: ["", "P V", "PV\x03", "PV\x05", "über", "PV/1", "parameter", "parameter/", "parameter/PV/1", "PROCESSVALUE", "P-V", "/PV"],
    connections: () => server.connections.size,
    drop: () => server.drop(),
    close: () => server.close(),
  });
}

/** STX text ETX, and the exclusive or of all behind STX. */
function blockOf(text: string): Buffer {
  const body = Buffer.from(`${text}\x03`, "latin1");
  const check = body.reduce((sum, byte) => sum ^ byte, 0);
  return Buffer.from([STX, ...body, check]);
}

/** Ends a poll at its ENQ, and a run of bytes without one at a bound. */
const cutPoll: Cut = (bytes) => {
  const end = bytes.indexOf(ENQ);
  if (end < 0) return bytes.length > MAX_HELD_BYTES ? bytes.length : "more";
  return end + 1;
};

/** Answers polls; what is not a poll has no answer. */
class PollConnection extends FramedConnection {
  readonly #answerTo: (poll: string) => Buffer | undefined;

  constructor(socket: Socket, answerTo: (poll: string) => Buffer | undefined) {
    super(socket, cutPoll);
    this.#answerTo = answerTo;
  }

  protected override onFrame(frame: Buffer): void {
    // An EOT begins again, whatever came before it.
    const poll = frame.subarray(frame.lastIndexOf(EOT) + 1, -1);
    const answer = this.#answerTo(poll.toString("latin1", 0, MAX_POLL_BYTES));
    if (answer) this.write(answer);
  }
}
