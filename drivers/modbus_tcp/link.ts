import { FaultError } from "../../src/model/fault.ts";
import { takeOut } from "../../src/model/take-out.ts";
import type { Reading } from "../../src/model/value.ts";
import type { DriverContext, Tap } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { Exchange, takeFor } from "../lib/exchange.ts";
import { createDeviceMemory, createIdCounter } from "../lib/ids.ts";
import { exceptionFault } from "./exceptions.ts";
import type { FirstRequest } from "./first-request.ts";
import { dataOf, exceptionOf, fence, frameLength, MAX_FRAME_BYTES, miscount, requestFrame, transactionOf, wrongAnswer } from "./frames.ts";
import { describeRead, type ModbusRead } from "./plan.ts";
import { readingsOf } from "./readings.ts";

/** The most that the Messaging Guide names; far below the 65,536 transaction ids. */
const MAX_IN_FLIGHT = 16;

/** What is read over one connection. */
export interface ModbusLink {
  /** The readings of one request, along its points. */
  read(read: ModbusRead, ctx: DriverContext): Promise<readonly Reading[]>;
  /** When the last answer came, monotonic ms; before the first one, minus infinity. */
  answeredMs(): number;
}

interface Sent {
  readonly transaction: number;
  readonly read: ModbusRead;
  readonly request: Uint8Array;
  readonly answer: (readings: readonly Reading[]) => void;
  readonly refuse: (error: Error) => void;
}

/** Transaction ids by `host:port`: a gateway may give a new connection the late answer to a request over the one before it. */
const transactionsOf = createDeviceMemory(() => createIdCounter(16));

/** Reads over an open connection; transaction ids go on where those of the last connection ended. Throws as `Session.read` does. */
export function linkModbus(connection: Connection, tap: Tap | undefined, first: FirstRequest): ModbusLink {
  const transactions = transactionsOf(connection.where);
  // What ends without an answer ends the connection too, and all of this with it. An array, as in Exchange.
  const sent: Sent[] = [];
  let unmatched = 0;
  let firstTransaction: number | undefined;
  let answeredMs = Number.NEGATIVE_INFINITY;

  const exchange = new Exchange(connection, tap, {
    fence,
    frameLength,
    maxFrameBytes: MAX_FRAME_BYTES,
    maxInFlight: MAX_IN_FLIGHT,
    repeatMs: (times, answerMs) => first.repeatMs(times, answerMs),
    onFrame(frame) {
      const id = transactionOf(frame);
      const known = sent.find(({ transaction }) => transaction === id);
      if (!known) {
        unmatched++;
        return undefined;
      }
      const { read, request, answer, refuse } = known;
      const wrong = wrongAnswer(request, frame);
      if (wrong !== undefined) return wrong;
      takeOut(sent, known);
      if (answeredMs < 0) first.answered(known.transaction === firstTransaction);
      answeredMs = performance.now();
      return takeFor(refuse, () => {
        const exception = exceptionOf(frame);
        const miscounted = miscount(request, frame);
        if (exception !== undefined) refuse(exceptionFault(exception, describeRead(read), connection.where, read.unit));
        else if (miscounted !== undefined)
          refuse(new FaultError("device_error", `${miscounted}; max_registers and max_coils make it be asked for less at once`));
        else answer(readingsOf(read, dataOf(frame)));
        return undefined;
      });
    },
  });

  return {
    read: (read, ctx) =>
      exchange.request(
        ctx,
        () => `${describeRead(read)}${unmatched > 0 ? ` (answers with a transaction id of no request: ${unmatched})` : ""}`,
        (answer, refuse) => {
          const transaction = transactions.next();
          const request = requestFrame(transaction, read);
          firstTransaction ??= transaction;
          sent.push({ transaction, read, request, answer, refuse });
          exchange.send(request);
        },
      ),
    answeredMs: () => answeredMs,
  };
}
