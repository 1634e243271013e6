import { FaultError } from "../../src/model/fault.ts";
import type { Reading } from "../../src/model/value.ts";
import type { Warning } from "../../src/model/warning.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { createDeviceMemory, createIdCounter } from "../lib/ids.ts";
import { TaggedExchange } from "../lib/tagged.ts";
import { unitHint } from "./address.ts";
import { exceptionFault } from "./exceptions.ts";
import type { FirstRequest } from "./first-request.ts";
import {
  dataOf,
  exceptionOf,
  fence,
  frameLength,
  identifiedBy,
  identifyFrame,
  MAX_FRAME_BYTES,
  miscount,
  requestFrame,
  transactionOf,
  wrongAnswer,
} from "./frames.ts";
import { describeRead, type ModbusRead } from "./plan.ts";
import { readingsOf } from "./readings.ts";
import type { ModbusSettings } from "./settings.ts";

/** The most that the Messaging Guide names; far below the 65,536 transaction ids. */
const MAX_IN_FLIGHT = 16;
/** Requests for one identification: three objects of 245 bytes at most. */
const MAX_PARTS = 4;

/** One request with its answer as frames of Modbus TCP, whatever framing carries them. */
export interface Ask<T> {
  readonly unit: number;
  /** See unitHint. */
  readonly unitHint: string;
  /** True: the answer has registers of 32 bits. */
  readonly isWide: boolean;
  form(transaction: number): Buffer;
  describe(): string;
  /** The device has answered, well or with an exception. */
  answered(): void;
  /** Reads an answer that is right; valid during the call only. */
  take(answer: Buffer): T;
}

/** Carries requests to a device and their answers back. */
export interface ModbusCarrier {
  readonly where: string;
  /** Throws as `Session.read` does. */
  ask<T>(ctx: DriverContext, ask: Ask<T>): Promise<T>;
  warnings(): readonly Warning[];
  alive(): boolean;
  close(): Promise<void>;
}

/** Reads over one connection. */
export interface ModbusLink {
  /** The readings of one request, along its points. */
  read(read: ModbusRead, ctx: DriverContext): Promise<readonly Reading[]>;
  /** Vendor, product code and revision of a unit. Throws as `read` does. */
  identify(unit: number, ctx: DriverContext): Promise<string>;
  /** When the last answer came, monotonic ms; before the first one, minus infinity. */
  answeredMs(): number;
}

/** Takes an answer that breaks nothing apart: the result of its request, or why the device has none. */
export function judge<T>(
  { take, answered, describe, unit, unitHint, isWide }: Ask<T>,
  request: Uint8Array,
  answer: Buffer,
  where: string,
): T | FaultError {
  answered();
  const exception = exceptionOf(answer);
  if (exception !== undefined) return exceptionFault(exception, describe(), where, unit, unitHint);
  const miscounted = miscount(request, answer, isWide);
  if (miscounted === undefined) return take(answer);
  return new FaultError("device_error", `${miscounted}; max_registers and max_coils make it be asked for less at once`);
}

/** Reads over whatever carries the frames. */
export function linkModbus(carrier: ModbusCarrier, framing: ModbusSettings["framing"]): ModbusLink {
  let answeredMs = Number.NEGATIVE_INFINITY;
  const answered = (): void => {
    answeredMs = performance.now();
  };
  return {
    read: (read, ctx) =>
      carrier.ask(ctx, {
        unit: read.unit,
        unitHint: unitHint(read.unit, framing),
        isWide: read.isWide === true,
        form: (transaction) => requestFrame(transaction, read),
        describe: () => describeRead(read),
        answered,
        take: (answer) => readingsOf(read, dataOf(answer)),
      }),
    async identify(unit, ctx) {
      const found = new Map<number, string>();
      let next: number | undefined = 0;
      for (let part = 0; part < MAX_PARTS && next !== undefined; part++) {
        const object: number = next;
        const { objects, next: following } = await carrier.ask(ctx, {
          unit,
          unitHint: unitHint(unit, framing),
          isWide: false,
          form: (transaction) => identifyFrame(transaction, unit, object),
          describe: () => `the identification of unit ${unit}`,
          answered,
          take(answer) {
            const identified = identifiedBy(answer);
            if (!identified) throw new FaultError("device_error", `the objects in the identification of unit ${unit} do not fill it`);
            return identified;
          },
        });
        for (const [id, text] of objects) found.set(id, text);
        next = following !== undefined && following > object ? following : undefined;
      }
      const words = [...found].sort(([a], [b]) => a - b).map(([, text]) => text.trim());
      return words.filter((text) => text !== "").join(", ");
    },
    answeredMs: () => answeredMs,
  };
}

/** Transaction ids by `host:port`: a gateway may give a new connection the late answer to a request over the one before it. */
const transactionsOf = createDeviceMemory(() => createIdCounter(16));

/** Modbus TCP over an open connection; transaction ids continue where those of the last connection ended. */
export function tcpCarrier(connection: Connection, ctx: Pick<DriverContext, "tap" | "log">, first: FirstRequest): ModbusCarrier {
  const transactions = transactionsOf(connection.where);
  const { where } = connection;
  let firstTransaction: number | undefined;
  let hasAnswered = false;
  let isSilent = true;

  const exchange: TaggedExchange<Buffer> = new TaggedExchange(connection, ctx, {
    fence,
    frameLength,
    maxFrameBytes: MAX_FRAME_BYTES,
    maxInFlight: MAX_IN_FLIGHT,
    repeatMs: (times, answerMs) => first.repeatMs(times, answerMs),
    unmatchedWords: "answers with a transaction id of no request",
    onFrame(frame) {
      isSilent = false;
      return exchange.answered(transactionOf(frame), frame);
    },
  });

  return {
    where,
    ask<T>(ctx: DriverContext, ask: Ask<T>) {
      let request: Uint8Array;
      const start = () => {
        const transaction = transactions.next();
        firstTransaction ??= transaction;
        request = ask.form(transaction);
        return { tag: transaction, frame: request };
      };
      return exchange.ask<T>(
        ctx,
        () => `${ask.describe()}${isSilent ? ask.unitHint : ""}`,
        start,
        (frame, answer, refuse) => {
          const wrong = wrongAnswer(request, frame);
          if (wrong !== undefined) return wrong;
          if (!hasAnswered) first.answered(transactionOf(frame) === firstTransaction);
          hasAnswered = true;
          const judged = judge(ask, request, frame, where);
          if (judged instanceof FaultError) refuse(judged);
          else answer(judged);
          return undefined;
        },
      );
    },
    warnings: () => [],
    alive: () => connection.alive(),
    close: () => connection.close(),
  };
}
