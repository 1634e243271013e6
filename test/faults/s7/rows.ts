import net, { type AddressInfo } from "node:net";
import { typeOf } from "../../../drivers/driver.ts";
import driver from "../../../drivers/s7/driver.ts";
import { ITEM_CODES, JOB_ERRORS, S7Memory, type S7Plc, startS7Plc } from "../../../drivers/s7/simulator.ts";
import { silentLog } from "../../../src/model/context.ts";
import { freePort } from "../../support/free-port.ts";
import { type FailureRow, Steps } from "../support/failures.ts";

/** What a row may use; all of it ends with the row. */
export interface Bench {
  start(change?: (plc: S7Plc) => void): Promise<S7Plc>;
  /** Runs when the row is over. */
  later(work: () => unknown): void;
}

export type Row = FailureRow<Bench, "network" | "connection" | "everything" | "variable">;

export function createBench(): Bench & { close(): Promise<void> } {
  const { later, close } = new Steps();
  return {
    later,
    async start(change = () => {}) {
      const memory = new S7Memory();
      memory.create("DB1", 100);
      const plc = await startS7Plc({ memory });
      later(() => plc.close());
      change(plc);
      return plc;
    },
    close,
  };
}

interface Asked {
  readonly slot?: number;
  readonly local?: object;
  readonly variable?: string;
}

/** Connects and reads one variable. */
async function readOnce(bench: Bench, port: number, { slot = 1, local = {}, variable = "DB1.DBW0:INT" }: Asked = {}): Promise<unknown> {
  const ctx = { signal: new AbortController().signal, log: silentLog, timeouts: { nameMs: 1000, connectMs: 1000, answerMs: 500 } };
  const settings = driver.settings.parse(local);
  const details = driver.details.parse({ type: "s7", host: "127.0.0.1", port, slot });
  const session = await driver.connect({ details, settings, secrets: {} }, ctx);
  bench.later(() => session.close());
  const [address = "", word = ""] = variable.split(":");
  const [request] = driver.plan([{ index: 0, ...driver.parseAddress(address, typeOf(driver, word), settings) }], session.limits);
  if (!request) throw new Error("nothing is planned");
  const [reading] = await session.read(request, ctx);
  return reading;
}

const from =
  (change: (plc: S7Plc) => void, asked: Asked = {}) =>
  async (bench: Bench) =>
    readOnce(bench, (await bench.start(change)).port, asked);

/** Answers what comes with the next of these bytes. */
const raw =
  (...answers: readonly string[]) =>
  async (bench: Bench) => {
    const server = net.createServer((socket) => {
      socket.on("error", () => {});
      bench.later(() => socket.destroy());
      let at = 0;
      socket.on("data", (request) => {
        const answer = Buffer.from(answers[at++]?.replaceAll(" ", "") ?? "", "hex");
        // The reference of the job.
        if (answer[7] === 0x32 && request[7] === 0x32) request.copy(answer, 11, 11, 13);
        socket.write(answer);
      });
    });
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    bench.later(() => server.close());
    return readOnce(bench, (server.address() as AddressInfo).port);
  };

const positions = new Set([2]);
const [CONFIRM, SET_UP] = ["0300 000b 06 d0 0001 0003 00", "0300 001b 02f080 3203 0000 0001 0008 0000 0000 f000 0001 0001 00f0"];

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
    what: "the controller speaks ISO transport, and not S7",
    reason: "UNKNOWN",
    condition: "protocol_violation",
    detail: /protocol id 0x72/,
    run: raw(CONFIRM, "0300 000b 02f080 72010000"),
  },
  {
    group: "network",
    what: "the controller does not answer a job",
    reason: "TIMEOUT",
    detail: /no answer within 500 ms to DB1\.DBB0\.\.1$/,
    run: from((plc) => {
      plc.misbehave = () => ({ silent: true });
    }),
  },
  {
    group: "network",
    what: "the controller closes the connection on a job",
    reason: "CONNECTION_CLOSED",
    detail: /closed the connection/,
    run: from((plc) => {
      plc.misbehave = () => ({ hangUp: "fin" });
    }),
  },
  {
    group: "network",
    what: "the controller resets the connection on a job (some forbid PUT/GET so)",
    reason: "CONNECTION_RESET",
    detail: /ECONNRESET/,
    run: from((plc) => {
      plc.resetsOnRead = true;
    }),
  },
  {
    group: "network",
    what: "the controller ends the connection with a disconnect",
    reason: "CONNECTION_CLOSED",
    detail: /ended the connection: disconnect reason 128/,
    run: raw(CONFIRM, SET_UP, "0300 000b 06 80 0001 0003 80"),
  },
];

const refusing = (wrongTsap: S7Plc["wrongTsap"]) => from((plc) => void Object.assign(plc, { positions, wrongTsap }));
const connection: readonly Row[] = [
  {
    group: "connection",
    what: "a wrong slot, refused with a disconnect",
    reason: "CONNECTION_CLOSED",
    condition: "module_not_found",
    detail: /disconnect reason 3 \(no such TSAP\).*rack 0, slot 1; other slots worth trying: 0/,
    run: refusing("disconnect"),
  },
  {
    group: "connection",
    what: "a wrong slot, refused by closing",
    reason: "CONNECTION_CLOSED",
    detail: /closed the connection; asked for rack 0, slot 1/,
    run: refusing("fin"),
  },
  {
    group: "connection",
    what: "a wrong slot, refused with a reset",
    reason: "CONNECTION_RESET",
    detail: /ECONNRESET; asked for rack 0, slot 1/,
    run: refusing("rst"),
  },
  {
    group: "connection",
    what: "a wrong slot, and no answer",
    reason: "TIMEOUT",
    detail: /ISO connect request; asked for rack 0, slot 1/,
    run: refusing("silent"),
  },
  {
    group: "connection",
    what: "no free connection of the type op",
    reason: "CONNECTION_CLOSED",
    detail: /disconnect reason 1 \(too many connections at this TSAP\).*all of its connections of the type op are taken/,
    run: from((plc) => void Object.assign(plc.slots, { op: 0 })),
  },
  {
    group: "connection",
    what: "a wrong raw TSAP",
    reason: "CONNECTION_CLOSED",
    detail: /are the TSAPs right \(local 10\.00, remote 20\.00\)/,
    run: from((plc) => void Object.assign(plc, { positions }), {
      local: { connection_type: "raw", local_tsap: "10.00", remote_tsap: "20.00" },
    }),
  },
  {
    group: "connection",
    what: "the set-up of the communication is refused",
    reason: "UNKNOWN",
    detail: /refused the set-up of the communication: error 0x8104/,
    run: from((plc) => {
      plc.setupError = JOB_ERRORS.serviceForbidden;
    }),
  },
  {
    group: "connection",
    what: "a slot that no rack has",
    reason: "UNKNOWN",
    condition: "configuration_invalid",
    detail: /slot 32 is out of range: 0 to 31/,
    run: from(() => {}, { slot: 32 }),
  },
];

const job = (what: string, error: number, fault: string, scope: string, detail: RegExp): Row => ({
  group: "everything",
  what,
  fault,
  scope,
  detail,
  run: from((plc) => {
    plc.readError = error;
  }),
});
const everything: readonly Row[] = [
  job("PUT/GET is not permitted", JOB_ERRORS.serviceForbidden, "access_denied", "everything", /0x8104.*permit access with PUT\/GET/),
  job("the protection level forbids reading", JOB_ERRORS.protectionLevel, "access_denied", "everything", /0xD0A1/),
  job("a password is needed", JOB_ERRORS.passwordNeeded, "access_denied", "everything", /0xD241/),
  job("the controller is short of resources", JOB_ERRORS.shortOfResources, "device_error", "busy", /0x8302/),
  job("the controller cannot at this moment", JOB_ERRORS.functionNotPossible, "device_error", "busy", /0x8305/),
  job("the controller finds the frame wrong", JOB_ERRORS.wrongFrame, "device_error", "points", /0x8500/),
];

const item = (what: string, code: number, fault: string, detail: RegExp): Row => ({
  group: "variable",
  what,
  fault,
  scope: "points",
  detail,
  run: from((plc) => void plc.memory.refused.set("DB1", code)),
});
const held = (what: string, bytes: string, variable: string, detail: RegExp): Row => ({
  group: "variable",
  what,
  fault: "not_a_number",
  detail,
  run: from((plc) => void plc.memory.areas.get("DB1")?.set(Buffer.from(bytes, "hex")), { variable }),
});
const variable: readonly Row[] = [
  {
    group: "variable",
    what: "the data block is not loaded, or it is optimised",
    fault: "not_found",
    scope: "points",
    detail: /item code 0x0A.*not loaded.*optimised.*s7plus/,
    run: from(() => {}, { variable: "DB2.DBW0:INT" }),
  },
  {
    group: "variable",
    what: "the address is behind the end of the block",
    fault: "out_of_range",
    scope: "points",
    detail: /DB1\.DBB98\.\.101: item code 0x05/,
    run: from(() => {}, { variable: "DB1.DBD98:REAL" }),
  },
  item("the block is protected", ITEM_CODES.accessDenied, "access_denied", /item code 0x03/),
  item("a module has a fault", ITEM_CODES.hardwareError, "device_error", /item code 0x01/),
  item("the controller does not know the type", ITEM_CODES.typeUnsupported, "type_mismatch", /item code 0x06/),
  item("the controller finds type and length contradicting", ITEM_CODES.sizeInconsistent, "type_mismatch", /item code 0x07/),
  held("a REAL that is not a number", "7fc00000", "DB1.DBD0:REAL", /NaN/),
  held("a DT that is not a date", "0000000000000000", "DB1.DBB0:DT", /is not a value of type DT/),
  held("an S5TIME with a digit above 9", "000a", "DB1.DBW0:S5TIME", /0x000a is not a value of type S5TIME/),
];

export const ROWS: readonly Row[] = [...network, ...connection, ...everything, ...variable];
