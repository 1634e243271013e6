import type { ItemErrorCode } from "./errors.ts";

/**
 * What a gateway needs of the system behind it: an OPC DA server, a PVI manager, a simulation. Nothing here writes. A call that fails as a
 * whole throws GatewayError; anything else that is thrown is told to the client as `internal_error`. Calls may overlap.
 */
export interface Backend {
  /** Of the program, for the client's log: `Reference gateway 1.0`. */
  readonly title: string;
  readonly protocols: readonly Target["protocol"][];
  /** What the machine has, as far as it can be listed. */
  servers(signal: AbortSignal): Promise<readonly ServerEntry[]>;
  /** Throws GatewayError `unknown_server`, `server_unavailable` or `access_denied`. */
  open(target: Target, signal: AbortSignal): Promise<BackendServer>;
}

/** What a client wants to read of: the words of the configuration API. */
export type Target = { readonly protocol: "OPC_DA"; readonly server_name: string } | { readonly protocol: "PVI"; readonly path: string };

export interface ServerEntry {
  readonly target: Target;
  readonly comment?: string;
}

/** One server behind the gateway, for one connection. `signal` aborts when the client's time is up or its connection ends. */
export interface BackendServer {
  readonly title: string;
  /** Another text once items may be others or have other types: a server that was started again, another project. At most 64 characters. */
  readonly epoch: string;
  /** What is in a branch, from after the place that an earlier page ended with. Throws GatewayError `bad_request` where there is no such branch. */
  browse(path: readonly string[], after: string | undefined, max: number, signal: AbortSignal): Promise<Page>;
  /** One answer for each item, in their order. */
  resolve(items: readonly string[], signal: AbortSignal): Promise<readonly (ResolvedItem | ItemError)[]>;
  /** One answer for each item, in their order. */
  read(items: readonly string[], signal: AbortSignal): Promise<readonly (ItemValue | ItemError)[]>;
  /** The connection has ended. */
  close(): void;
}

export interface Page {
  readonly entries: readonly BrowseEntry[];
  /** The place where the next page goes on; absent: this is the last. At most 256 characters. */
  readonly next?: string;
}

/** A branch, an item, or both. */
export interface BrowseEntry {
  readonly name: string;
  readonly isBranch: boolean;
  /** By which it is read; absent: it has no value. */
  readonly item?: string;
  /** Of docs/gateway-protocol.md, such as `float64` or `int16[10]`; absent: not known, or none of them. */
  readonly type?: string;
  readonly unit?: string;
  readonly comment?: string;
}

export interface ResolvedItem {
  /** As the server itself writes it. */
  readonly item: string;
  /** Absent: only its value says it. */
  readonly type?: string;
}

export type PlainValue = boolean | number | bigint | string;

export interface ItemValue {
  readonly value: PlainValue | readonly PlainValue[];
  readonly type: string;
  /** The quality of OPC DA, 0 to 65535; 192 is good. */
  readonly quality: number;
  /** Of the server or the device, epoch ms; absent: it has none. */
  readonly timeMs?: number;
}

export interface ItemError {
  readonly error: ItemErrorCode;
  readonly message: string;
  /** As in GatewayError. */
  readonly native?: string;
}
