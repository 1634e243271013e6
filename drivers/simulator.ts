import type { Value } from "../src/model/value.ts";

/** A device for tests and the demo. Speaks the real protocol on a real socket; shares no frame code with its driver. */
export interface Simulator {
  readonly port: number;
  /** Connection details as the API would hold them, for the given way in (a proxy may stand between). */
  details(host: string, port: number): Record<string, unknown>;
  /** What the device holds: the address as a person types it, its type as written, and the value that a right driver reads. */
  readonly variables: readonly { readonly address: string; readonly type: string; readonly value: Value }[];
  /** Well-formed, but this device has no such variable. */
  readonly missing: { readonly address: string; readonly type: string };
  /** Addresses that the driver must refuse. */
  readonly malformed: readonly string[];
  /** TCP connections that clients have open now; over UDP 0, because no datagram tells a device of a closed socket. */
  connections(): number;
  close(): Promise<void>;
}

export type StartSimulator = (options?: Listening) => Promise<Simulator>;

/** The place where a device listens: port 0 or absent takes a free one; 127.0.0.1 unless told otherwise. */
export interface Listening {
  readonly port?: number;
  readonly host?: string;
}
