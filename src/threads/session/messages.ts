import type { ConnectInput, Discovered, Limits, Point, Request, Timeouts } from "../../../drivers/driver.ts";
import type { LogMessage } from "../../lib/thread/log.ts";
import type { Address } from "../../model/address.ts";
import type { PkiPlace } from "../../model/pki.ts";
import type { PackedReadings } from "../../model/reading-columns.ts";
import type { Warning } from "../../model/warning.ts";
import type { PackedError } from "./errors.ts";
import type { PackedPrepared } from "./prepared.ts";

/** The session worker's input at its start. */
export interface SessionWorkerData {
  /** The place where certificates are kept and whose they are; absent: no state folder keeps any. */
  readonly pki?: PkiPlace;
}

/** The part of a call's context that crosses; signal, log and look-up follow as messages of their own. */
export interface CallContext {
  readonly timeouts: Timeouts;
  /** The host looks names up, because it has the policy and remembers answers. */
  readonly resolves: boolean;
  /** Somebody wants to know how far long work has come. */
  readonly progresses: boolean;
  /** Names the device in the worker's memory of devices, which ends with the worker; undefined: nothing is kept. */
  readonly device: string | undefined;
  /** See DriverContext. */
  readonly reader?: string;
  readonly intervalMs?: number;
  /** What is kept of the source: see Kept. With `prepare`. */
  readonly kept?: Readonly<Record<string, unknown>>;
}

/**
 * A call (`connect`, `load`, `read`, `prepare`, `discover`) is known by a number that is never used again; a session by the number of its
 * `connect`. The last two are answered page by page: each page is asked for, and the call goes on until its last page, a failure or
 * `release`.
 */
export type ToSessionWorker =
  | {
      readonly type: "connect";
      readonly call: number;
      readonly driver: string;
      readonly input: ConnectInput<unknown, unknown>;
      readonly context: CallContext;
      /** Takes what passes over its connections, for the host to read at any time; absent: nobody keeps it. */
      readonly frames?: SharedArrayBuffer;
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
  /** What the driver's sessions stand on is loaded. */
  | { readonly type: "load"; readonly call: number; readonly driver: string }
  /** Points of the `prepare` that follows: many are sent in parts, so that none holds up this thread. */
  | { readonly type: "points"; readonly call: number; readonly points: readonly Point[] }
  | { readonly type: "prepare" | "discover"; readonly call: number; readonly session: number; readonly context: CallContext }
  | { readonly type: "next"; readonly call: number }
  /** Nobody wants more of this call. */
  | { readonly type: "release"; readonly call: number }
  | { readonly type: "abort"; readonly call: number; readonly reason: PackedError }
  | { readonly type: "close"; readonly session: number }
  | { readonly type: "resolved"; readonly lookUp: number; readonly addresses: readonly Address[] | PackedError }
  | { readonly type: "ping" }
  | { readonly type: "stop" };

export type FromSessionWorker =
  | {
      readonly type: "connected";
      readonly call: number;
      readonly limits: Limits;
      readonly warnings: readonly Warning[];
      readonly prepares: boolean;
      readonly discovers: boolean;
      readonly epoch: string | undefined;
    }
  | { readonly type: "loaded"; readonly call: number }
  | ({ readonly type: "page"; readonly call: number; readonly isLast: boolean } & PageContent)
  | { readonly type: "progress"; readonly call: number; readonly done: number; readonly total: number | undefined }
  | { readonly type: "readings"; readonly call: number; readonly readings: PackedReadings; readonly alive: boolean }
  | { readonly type: "failed"; readonly call: number; readonly error: PackedError }
  /** A session's notes for the operator have changed. */
  | { readonly type: "warnings"; readonly session: number; readonly warnings: readonly Warning[] }
  /** The points prepared in a session are no longer valid. */
  | { readonly type: "epoch"; readonly session: number; readonly epoch: string | undefined }
  /** The limits of a session's requests have changed. */
  | { readonly type: "limits"; readonly session: number; readonly limits: Limits }
  /** The device has ended a session. */
  | { readonly type: "lost"; readonly session: number }
  | { readonly type: "closed"; readonly session: number }
  /** A value that the driver keeps of the source of a call. */
  | { readonly type: "keep"; readonly call: number; readonly key: string; readonly value: unknown }
  | { readonly type: "resolve"; readonly lookUp: number; readonly call: number; readonly host: string }
  /** This address of the host took the connection of a call. */
  | { readonly type: "reached"; readonly call: number; readonly host: string; readonly address: string }
  | LogMessage
  | { readonly type: "pong" };

export type PageContent = { readonly prepared: readonly PackedPrepared[] } | { readonly discovered: readonly Discovered[] };

/** Requests and their answers. */
export type Ask = Extract<ToSessionWorker, { type: "connect" | "load" | "read" | "prepare" | "discover" | "next" }>;
export type Answer = Extract<FromSessionWorker, { type: "connected" | "loaded" | "readings" | "page" | "failed" }>;
