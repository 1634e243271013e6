import { FaultError } from "../../src/model/fault.ts";
import type { Reading } from "../../src/model/value.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { createDeviceMemory, createIdCounter } from "../lib/ids.ts";
import { TaggedExchange } from "../lib/tagged.ts";
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

/** Transaction ids by `host:port`: a gateway may give a new connection the late answer to a request over the one before it. */
const transactionsOf = createDeviceMemory(() => createIdCounter(16));

/** Reads over an open connection; transaction ids go on where those of the last connection ended. Throws as `Session.read` does. */
export function linkModbus(connection: Connection, ctx: Pick<DriverContext, "tap" | "log">, first: FirstRequest): ModbusLink {
  const transactions = transactionsOf(connection.where);
  const { where } = connection;
  let firstTransaction: number | undefined;
  let answeredMs = Number.NEGATIVE_INFINITY;

  const exchange: TaggedExchange<Buffer> = new TaggedExchange(connection, ctx, {
    fence,
    frameLength,
    maxFrameBytes: MAX_FRAME_BYTES,
    maxInFlight: MAX_IN_FLIGHT,
    repeatMs: (times, answerMs) => first.repeatMs(times, answerMs),
    unmatchedWords: "answers with a transaction id of no request",
    onFrame: (frame) => exchange.answered(transactionOf(frame), frame),
  });

  return {
    read(read, ctx) {
      let request: Uint8Array;
      const start = () => {
        const transaction = transactions.next();
        firstTransaction ??= transaction;
        request = requestFrame(transaction, read);
        return { tag: transaction, frame: request };
      };
      return exchange.ask<readonly Reading[]>(
        ctx,
        () => describeRead(read),
        start,
        (frame, answer, refuse) => {
          const wrong = wrongAnswer(request, frame);
          if (wrong !== undefined) return wrong;
          if (answeredMs < 0) first.answered(transactionOf(frame) === firstTransaction);
          answeredMs = performance.now();
          const exception = exceptionOf(frame);
          const miscounted = miscount(request, frame);
          if (exception !== undefined) refuse(exceptionFault(exception, describeRead(read), where, read.unit));
          else if (miscounted !== undefined)
            refuse(new FaultError("device_error", `${miscounted}; max_registers and max_coils make it be asked for less at once`));
          else answer(readingsOf(read, dataOf(frame)));
          return undefined;
        },
      );
    },
    answeredMs: () => answeredMs,
  };
}
