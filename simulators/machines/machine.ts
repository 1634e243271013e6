import type { SimulatedVariable } from "../../src/model/simulation.ts";
import type { Power } from "./switchable.ts";

/** A machine of a simulated plant: a device on a real socket, and how it is configured. */
export interface DemoMachine extends Power {
  readonly name: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly readoutIntervalS: number;
  readonly variables: readonly SimulatedVariable[];
  /** From now on it refuses each read, or no longer; absent: it knows no such thing. */
  refuseReads?(is: boolean): void;
  /** It takes requests for a few registers alone. */
  shortenReads?(is: boolean): void;
  /** It loses each request that comes before the answer to the one before. */
  takesOne?(is: boolean): void;
  /** From now on it answers under another unit identifier, or no longer; absent: it has none. */
  moveUnit?(is: boolean): void;
}
