import net, { type AddressInfo } from "node:net";
import type { Prepared } from "../../../drivers/driver.ts";
import { typeOf } from "../../../drivers/driver.ts";
import driver from "../../../drivers/s7plus/driver.ts";
import { type S7PlusPlc, startSimulator } from "../../../drivers/s7plus/simulator.ts";
import { silentLog } from "../../../src/model/context.ts";
import { freePort } from "../../support/free-port.ts";
import type { FailureRow } from "../support/failures.ts";

/** What a row may use; all of it ends with the row. */
export interface Bench {
  start(change?: (plc: S7PlusPlc) => void): Promise<S7PlusPlc>;
  /** Runs when the row is over. */
  later(work: () => unknown): void;
}

export type Row = FailureRow<Bench, "network" | "connection" | "login" | "session" | "variable">;

export function createBench(): Bench & { close(): Promise<void> } {
  const steps: (() => unknown)[] = [];
  const later = (work: () => unknown) => void steps.push(work);
  return {
    later,
    async start(change = () => {}) {
      const { plc, close } = await startSimulator();
      later(close);
      change(plc);
      return plc;
    },
    async close() {
      for (const step of steps.reverse()) await step();
    },
  };
}

interface Asked {
  readonly local?: object;
  readonly variable?: string;
  readonly password?: string;
  /** Before the variable is read, once it is looked up. */
  readonly onceKnown?: (plc: S7PlusPlc) => void;
}

/** Connects, looks one variable up and reads it. */
async function readOnce(
  bench: Bench,
  port: number,
  { local = {}, variable = "Types.int", password, onceKnown }: Asked = {},
  plc?: S7PlusPlc,
) {
  const ctx = { signal: new AbortController().signal, log: silentLog, timeouts: { nameMs: 1000, connectMs: 1000, answerMs: 500 } };
  const settings = driver.settings.parse(local);
  const details = driver.details.parse({ type: "s7plus", host: "127.0.0.1", port, password: { type: "none" } });
  const session = await driver.connect({ details, settings, secrets: password === undefined ? {} : { password } }, ctx);
  bench.later(() => session.close());
  const [address = "", word] = variable.split(":");
  const point = { index: 0, ...driver.parseAddress(address, word === undefined ? undefined : typeOf(driver, word), settings) };
  const prepared: Prepared[] = [];
  for await (const batch of session.prepare?.([point], ctx) ?? []) prepared.push(...batch);
  const [one] = prepared;
  if (!one) throw new Error("nothing was looked up");
  if ("refusal" in one) throw one.refusal;
  if (plc) onceKnown?.(plc);
  const [request] = driver.plan([{ index: 0, address: one.address, type: one.type }], session.limits);
  if (!request) throw new Error("nothing is planned");
  const [reading] = await session.read(request, ctx);
  return reading;
}

const from =
  (change: (plc: S7PlusPlc) => void, asked: Asked = {}) =>
  async (bench: Bench) => {
    const plc = await bench.start(change);
    return readOnce(bench, plc.port, asked, plc);
  };

/** Answers what comes with the next of these bytes. */
const raw =
  (...answers: readonly string[]) =>
  async (bench: Bench) => {
    const server = net.createServer((socket) => {
      socket.on("error", () => {});
      bench.later(() => socket.destroy());
      let at = 0;
      socket.on("data", () => socket.write(Buffer.from(answers[at++]?.replaceAll(" ", "") ?? "", "hex")));
    });
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    bench.later(() => server.close());
    return readOnce(bench, (server.address() as AddressInfo).port);
  };

const CONFIRM = "0300 000b 06 d0 0001 0003 00";
const PASSWORD = "geheim";
const locked =
  (change: (plc: S7PlusPlc) => void, asked: Asked = {}) =>
  (bench: Bench) =>
    from((plc) => {
      [plc.level, plc.password] = [4, PASSWORD];
      change(plc);
    }, asked)(bench);
/** What becomes of reads once the variable is looked up. */
const whenRead = (misbehaviour: ReturnType<NonNullable<S7PlusPlc["misbehave"]>>): Asked => ({
  onceKnown: (plc) => {
    plc.misbehave = ({ name }) => (name === "getMultiVariables" ? misbehaviour : undefined);
  },
});
const exploring = (misbehaviour: ReturnType<NonNullable<S7PlusPlc["misbehave"]>>) => (plc: S7PlusPlc) => {
  plc.misbehave = ({ name }) => (name === "explore" ? misbehaviour : undefined);
};
const unknown = { reason: "S7PLUS_ERROR", category: "UNKNOWN" } as const;
const denied = { reason: "S7PLUS_ERROR", category: "AUTHENTICATION" } as const;

const network: readonly Row[] = [
  {
    group: "network",
    what: "nothing listens on the port",
    reason: "CONNECTION_REFUSED",
    detail: /ECONNREFUSED/,
    run: async (bench) => readOnce(bench, await freePort()),
  },
  {
    group: "network",
    what: "another protocol answers",
    reason: "UNKNOWN",
    condition: "protocol_violation",
    detail: /TPKT version 72/,
    run: raw(Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n").toString("hex")),
  },
  {
    group: "network",
    what: "the controller speaks ISO transport and S7, not S7CommPlus",
    reason: "UNKNOWN",
    condition: "protocol_violation",
    detail: /protocol id 0x32/,
    run: raw(CONFIRM, "0300 000b 02f080 32010000"),
  },
  {
    group: "network",
    what: "the controller does not answer a read",
    reason: "TIMEOUT",
    detail: /no answer within 500 ms to Types\.int/,
    run: from(() => {}, whenRead({ silent: true })),
  },
  {
    group: "network",
    what: "the controller resets the connection on a read",
    reason: "CONNECTION_RESET",
    detail: /ECONNRESET/,
    run: from(() => {}, whenRead({ hangUp: "rst" })),
  },
  {
    group: "network",
    what: "the controller closes the connection on a read",
    reason: "CONNECTION_CLOSED",
    detail: /closed the connection/,
    run: from(() => {}, whenRead({ hangUp: "fin" })),
  },
];

const connection: readonly Row[] = [
  {
    group: "connection",
    what: "the TSAP is refused, or all connections of its kind are taken",
    reason: "CONNECTION_CLOSED",
    detail: /asked for the TSAP SIMATIC-ROOT-ES/,
    run: from((plc) => {
      plc.tsaps = new Set();
    }),
  },
  {
    group: "connection",
    what: "the firmware knows no TLS",
    ...unknown,
    detail: /return value -119 \(unknown request\).*read the CPU with s7/,
    run: from((plc) => {
      plc.ssl = "unknown-service";
    }),
  },
  {
    group: "connection",
    what: "secure communication is switched off in the project",
    ...unknown,
    detail: /return value -507 \(no support for TLS\).*secure PG\/PC and HMI communication/,
    run: from((plc) => {
      plc.ssl = "no-tls";
    }),
  },
  {
    group: "connection",
    what: "the CPU resets the connection at the first message of TLS",
    ...unknown,
    detail: /refused the handshake.*ECONNRESET/,
    run: from((plc) => {
      plc.ssl = "reset";
    }),
  },
  {
    group: "connection",
    what: "the CPU and the collector agree on no kind of TLS",
    ...unknown,
    detail: /refused the handshake.*alert/,
    run: from((plc) => {
      plc.ssl = "alert";
    }),
  },
  {
    group: "connection",
    what: "the CPU shows another certificate than the one that is pinned",
    ...unknown,
    detail: /not the one of the setting certificate/,
    run: from(() => {}, { local: { certificate: "00".repeat(32) } }),
  },
  {
    group: "connection",
    what: "all sessions of the CPU are taken",
    ...unknown,
    detail: /a session: return value -113 \(too many sessions\)/,
    run: from((plc) => {
      plc.maxSessions = 0;
    }),
  },
  {
    group: "connection",
    what: "the CPU refuses the set-up of the session",
    ...unknown,
    detail: /the set-up of the session: return value -106/,
    run: from((plc) => {
      plc.setUpCode = -106;
    }),
  },
];

const login: readonly Row[] = [
  {
    group: "login",
    what: "the password is missing",
    ...denied,
    detail: /no access without a password/,
    run: locked(() => {}),
  },
  {
    group: "login",
    what: "the password is wrong",
    ...denied,
    detail: /refused the password: return value 22/,
    run: locked(() => {}, { password: "wrong" }),
  },
  {
    group: "login",
    what: "the level is disabled for the moment",
    ...denied,
    detail: /return value 38/,
    run: locked(
      (plc) => {
        plc.wrongPasswordCode = 38;
      },
      { password: "wrong" },
    ),
  },
  {
    group: "login",
    what: "the user or the user's password is wrong",
    ...denied,
    detail: /the password of the user "otto"/,
    run: locked(
      (plc) => {
        [plc.legitimation, plc.device] = ["new", "1;6ES7 511-1AK02-0AB0;V3.1"];
      },
      { password: "wrong", local: { user: "otto" } },
    ),
  },
  {
    group: "login",
    what: "the password is of a level that may not read",
    ...denied,
    detail: /took the password and still gives no access/,
    run: locked(
      (plc) => {
        plc.levelOfPassword = 4;
      },
      { password: PASSWORD },
    ),
  },
  {
    group: "login",
    what: "the firmware has a log-in that is not known here",
    ...unknown,
    detail: /V2\.8.*log-in is not known here/,
    run: locked(
      (plc) => {
        plc.device = "1;6ES7 511-1AK02-0AB0;V2.8";
      },
      { password: PASSWORD },
    ),
  },
  {
    group: "login",
    what: "the rights of the session are taken away",
    ...denied,
    detail: /taken the session's rights away \(protection level 4/,
    run: from(() => {}, { onceKnown: (plc) => plc.setLevel(4) }),
  },
];

const session: readonly Row[] = [
  {
    group: "session",
    what: "the CPU ends the session and says why",
    ...unknown,
    detail: /ended the session: return value/,
    run: from(() => {}, whenRead({ event: "fatal" })),
  },
  {
    group: "session",
    what: "the log-in is taken back",
    ...denied,
    detail: /return value -118 \(session delegitimated\)/,
    run: from(() => {}, whenRead({ code: -118 })),
  },
  {
    group: "session",
    what: "the CPU has no memory for a single variable",
    fault: "device_error",
    scope: "busy",
    detail: /return value -4 \(not enough memory\)/,
    run: from(() => {}, whenRead({ code: -4 })),
  },
  {
    group: "session",
    what: "too many requests of all clients",
    fault: "device_error",
    scope: "busy",
    detail: /return value -112 \(too many requests\)/,
    run: from(() => {}, whenRead({ code: -112 })),
  },
  {
    group: "session",
    what: "the CPU refuses a read for another reason",
    fault: "device_error",
    scope: "points",
    detail: /return value -95 \(not implemented\)/,
    run: from(() => {}, whenRead({ code: -95 })),
  },
  {
    group: "session",
    what: "the look-up of symbols has no answer, and no variable is read yet",
    reason: "TIMEOUT",
    detail: /the list of its blocks/,
    run: from(exploring({ silent: true })),
  },
  {
    group: "session",
    what: "the look-up of symbols is refused",
    fault: "device_error",
    scope: "points",
    detail: /return value -95 \(not implemented\)/,
    run: from(exploring({ code: -95 })),
  },
  {
    group: "session",
    what: "another program was loaded (it is looked up again at once)",
    fault: "program_changed",
    scope: "program",
    detail: /no longer where it was/,
    run: from(() => {}, { onceKnown: (plc) => plc.download(undefined, { ids: "shifted" }) }),
  },
];

const variable: readonly Row[] = [
  {
    group: "variable",
    what: "neither a block nor a tag has this name",
    fault: "not_found",
    scope: "points",
    detail: /neither a block nor a tag Nowhere/,
    run: from(() => {}, { variable: "Nowhere.x" }),
  },
  {
    group: "variable",
    what: "the block has no such variable",
    fault: "not_found",
    scope: "points",
    detail: /has no nope there/,
    run: from(() => {}, { variable: "Types.nope" }),
  },
  {
    group: "variable",
    what: "an access string leads to nothing",
    fault: "not_found",
    detail: /8A0E0001\.FFFF: return value -255/,
    run: from(() => {}, { variable: "8A0E0001.FFFF" }),
  },
  {
    group: "variable",
    what: "an index outside the array",
    fault: "out_of_range",
    scope: "points",
    detail: /the index 4 is outside 0\.\.3/,
    run: from(() => {}, { variable: "Arrays.levels[4]" }),
  },
  {
    group: "variable",
    what: "the variable is denied, with all others of its request or alone",
    fault: "access_denied",
    detail: /Types\.int .*return value -100 .*accessible from HMI/,
    run: from(() => {}, {
      onceKnown: (plc) => {
        plc.refuse = () => -100;
      },
    }),
  },
  {
    group: "variable",
    what: "a structure",
    fault: "type_mismatch",
    scope: "points",
    detail: /name a member of it/,
    run: from(() => {}, { variable: "Motor_DB.main" }),
  },
  {
    group: "variable",
    what: "another type than the variable has",
    fault: "type_mismatch",
    scope: "points",
    detail: /is INT \(int16\) in the PLC, not float32/,
    run: from(() => {}, { variable: "Types.int:REAL" }),
  },
  {
    group: "variable",
    what: "a REAL that is not a number",
    fault: "not_a_number",
    detail: /NaN/,
    run: from((plc) => plc.program.put('"Types".real', Number.NaN), { variable: "Types.real" }),
  },
  {
    group: "variable",
    what: "the CPU sends neither a value nor a refusal",
    fault: "device_error",
    detail: /neither a value nor a refusal/,
    run: from(() => {}, {
      onceKnown: (plc) => {
        plc.refuse = () => "lost";
      },
    }),
  },
];

export const ROWS: readonly Row[] = [...network, ...connection, ...login, ...session, ...variable];
