import type { ConnectInput, Limits, Request, Timeouts } from "../../drivers/driver.ts";
import type { Address } from "../model/address.ts";
import type { PkiPlace } from "../model/pki.ts";
import type { PackedError } from "./failures.ts";
import type { PackedReadings } from "./readings.ts";

/** What the acquisition worker is started with. */
export interface AcquireWorkerData {
  /** Where certificates lie and whose they are; absent: there is no state folder to keep them in. */
  readonly pki?: PkiPlace;
}

/** What of a call's context crosses; signal, log and look-up follow as messages of their own. */
export interface CallContext {
  readonly timeouts: Timeouts;
  /** Names are looked up by the acquisition thread, which has the agent's memory. */
  readonly resolves: boolean;
}

/** A call (`connect`, `read`) is known by a number that is never used again; a session by the number of its `connect`. */
export type ToAcquire =
  | {
      readonly type: "connect";
      readonly call: number;
      readonly driver: string;
      readonly input: ConnectInput<unknown, unknown>;
      readonly context: CallContext;
    }
  | {
      readonly type: "read";
      readonly call: number;
      readonly session: number;
      /** Number of a request within its session; `request` comes along the first time only. */
      readonly requestNumber: number;
      readonly request?: Request;
      /** Requests that were kept for this session are forgotten first. */
      readonly forget?: true;
      readonly context: CallContext;
    }
  | { readonly type: "abort"; readonly call: number; readonly reason: PackedError }
  | { readonly type: "close"; readonly session: number }
  | { readonly type: "resolved"; readonly lookUp: number; readonly addresses: readonly Address[] | PackedError }
  | { readonly type: "ping" }
  | { readonly type: "stop" };

export type FromAcquire =
  | { readonly type: "connected"; readonly call: number; readonly limits: Limits; readonly warnings: readonly string[] }
  | { readonly type: "readings"; readonly call: number; readonly readings: PackedReadings; readonly alive: boolean }
  | { readonly type: "failed"; readonly call: number; readonly error: PackedError }
  /** What an operator should know of a session has changed. */
  | { readonly type: "warnings"; readonly session: number; readonly warnings: readonly string[] }
  /** The far side of a session has gone. */
  | { readonly type: "lost"; readonly session: number }
  | { readonly type: "closed"; readonly session: number }
  | { readonly type: "resolve"; readonly lookUp: number; readonly call: number; readonly host: string }
  /** This address of the host took the connection of a call. */
  | { readonly type: "reached"; readonly call: number; readonly host: string; readonly address: string }
  | {
      readonly type: "log";
      /** Undefined: of the worker itself. */
      readonly call?: number;
      readonly session?: number;
      readonly level: "debug" | "info" | "warn" | "error";
      readonly fields: Readonly<Record<string, unknown>>;
      readonly message: string;
    }
  | { readonly type: "pong" };

/** What settles a call of `connect` or `read`. */
export type Answer = Extract<FromAcquire, { type: "connected" | "readings" | "failed" }>;
