import net from "node:net";
import modbusSerial from "modbus-serial";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext, Tap } from "../driver.ts";
import { createExchange } from "../lib/exchange.ts";
import type { Connection } from "../lib/tcp.ts";
import { exceptionFault } from "./exceptions.ts";
import { fence, frameLength, MAX_FRAME_BYTES, miscount, transactionOf, wrongAnswer } from "./frames.ts";
import { describeRead, type ModbusRead } from "./plan.ts";

/**
 * modbus-serial's transaction ids wrap at 256 and overwrite what is pending: 16 in flight (the most that the Messaging Guide names)
 * keep far below.
 */
const MAX_IN_FLIGHT = 16;

/** The data bytes of one answer, exactly as many as were asked for. */
export type ReadData = (read: ModbusRead, ctx: DriverContext) => Promise<Buffer>;

/**
 * modbus-serial forms the requests and takes the answers apart; it never touches the wire. It gets a socket that is not
 * connected to anything: what it writes goes through the fence to the real one, and it sees only whole answers that belong
 * to a request. Its connect, close, time-out, promise calls and shared unit id are not used.
 */
class LinkSocket extends net.Socket {
  /** modbus-serial takes a socket of ours only if it is open. */
  override readonly readyState = "open";
  readonly #send: (frame: Uint8Array) => void;
  constructor(send: (frame: Uint8Array) => void) {
    super();
    this.#send = send;
  }
  override write(frame: unknown): boolean {
    if (frame instanceof Uint8Array) this.#send(frame);
    return true;
  }
}

/** Reads over an open connection. Throws as `Session.read` does. */
export function linkModbus(connection: Connection, tap: Tap | undefined): ReadData {
  // What was sent and is not answered, by transaction id.
  const sent = new Map<number, Uint8Array>();
  let unmatched = 0;
  /** What is wrong with the length of the answer that modbus-serial is taking just now. */
  let miscounted: string | undefined;

  const exchange = createExchange(connection, tap, {
    fence,
    frameLength,
    maxFrameBytes: MAX_FRAME_BYTES,
    maxInFlight: MAX_IN_FLIGHT,
    onFrame(frame) {
      const transaction = transactionOf(frame);
      const request = sent.get(transaction);
      if (!request) {
        unmatched++;
        return undefined;
      }
      const wrong = wrongAnswer(request, frame);
      if (wrong !== undefined) return wrong;
      sent.delete(transaction);
      miscounted = miscount(request, frame);
      const unit = request[6] ?? 0;
      // modbus-serial would take data of any length: it is handed a refusal instead, and calls back in this turn.
      const taken = miscounted === undefined ? frame : refused(request);
      socket.emit("data", taken[6] === unit ? taken : withUnit(taken, unit));
      miscounted = undefined;
      forgetAnswered(client, transaction);
      return undefined;
    },
  });
  const socket = new LinkSocket((frame) => {
    // modbus-serial turns what write throws into a rejection nobody handles; the exchange has then failed every request.
    if (connection.alive()) {
      sent.set(transactionOf(frame), frame);
      try {
        exchange.send(frame);
      } catch {
        sent.clear();
      }
    }
  });
  const client = new modbusSerial.default();
  client.linkTCP(socket, { port: 0 }, () => {});
  client.on("error", () => {});

  return (read, ctx) =>
    exchange.request(
      ctx,
      () => `${describeRead(read)}${unmatched > 0 ? ` (answers with a transaction id of no request: ${unmatched})` : ""}`,
      (answer, refuse) => {
        const done = (error: Error | null, result: { buffer: Buffer } | undefined): void => {
          if (miscounted !== undefined)
            refuse(new FaultError("device_error", `${miscounted}; max_registers and max_coils make it be asked for less at once`));
          else if (!error && result) answer(result.buffer);
          else refuse(refusal(error, read, connection.where));
        };
        const { unit, functionCode, start, count } = read;
        if (functionCode === 1) client.writeFC1(unit, start, count, done);
        else if (functionCode === 2) client.writeFC2(unit, start, count, done);
        else if (functionCode === 3) client.writeFC3(unit, start, count, done);
        else client.writeFC4(unit, start, count, done);
      },
    );
}

/**
 * modbus-serial keeps each answered request, with its timer and its buffers, until its id comes round again 256 requests later:
 * long enough to leave the youngest generation of the heap, which then grows with every read.
 */
function forgetAnswered(client: object, transaction: number): void {
  const kept: unknown = "_transactions" in client ? client._transactions : undefined;
  if (typeof kept === "object" && kept !== null) Reflect.deleteProperty(kept, transaction);
}

function refusal(error: Error | null, read: ModbusRead, where: string): Error {
  const code: unknown = error && "modbusCode" in error ? error.modbusCode : undefined;
  if (typeof code === "number") return exceptionFault(code, describeRead(read), where, read.unit);
  return new ReasonError("UNKNOWN", `modbus-serial: ${error?.message ?? "no result"} for ${describeRead(read)}`, {
    ...(error && { cause: error }),
    condition: "internal_error",
  });
}

/** The exception "server device failure" to a request. */
function refused(request: Uint8Array): Buffer {
  return Buffer.from([...request.subarray(0, 4), 0, 3, request[6] ?? 0, (request[7] ?? 0) | 0x80, 4]);
}

/** modbus-serial takes an answer from the unit that was asked only. */
function withUnit(frame: Buffer, unit: number): Buffer {
  const copy = Buffer.from(frame);
  copy[6] = unit;
  return copy;
}
