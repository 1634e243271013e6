/** The contract between `collector simulate` and the simulators' own package. The collector holds no simulator: it loads them where they are installed. */

/** A variable of a simulated machine, as a person configures it. */
export interface SimulatedVariable {
  readonly name: string;
  readonly address: string;
  readonly type: string;
  readonly unit: string | null;
}

/**
 * Faults that a simulated machine can have. `silent`: it accepts connections and answers nothing. `refuses`: nothing listens on its port.
 * `slow`: each answer comes seconds late. `drop`: connections are reset every few seconds. `locked`: it answers and refuses each read.
 * `wrong-unit`: it answers under another unit identifier. `deaf`: it leaves the first request of each connection without an answer.
 * `hurried`: the same with a request that comes right after an answer. `one-at-a-time`: the same with a request that comes before the answer to
 * the one before. `short-blocks`: it refuses requests for more than a few registers.
 */
export const SIMULATED_FAULTS = [
  "silent",
  "refuses",
  "slow",
  "drop",
  "locked",
  "wrong-unit",
  "deaf",
  "hurried",
  "one-at-a-time",
  "short-blocks",
] as const;
export type SimulatedFault = (typeof SIMULATED_FAULTS)[number];

/** A machine that can be simulated, one for each type of data source. */
export interface SimulatedMachine {
  readonly type: string;
  /** A name in the form of a data source's. */
  readonly name: string;
  readonly what: string;
  /** The default port; above 1023, so that it needs no rights. */
  readonly port: number;
  readonly faults: readonly SimulatedFault[];
  /** Listens on this address and port (0: a free one). `faults`: those that will be planted. Throws what listening fails with. */
  start(place: { readonly host: string; readonly port: number; readonly faults: readonly SimulatedFault[] }): Promise<RunningMachine>;
}

export interface RunningMachine {
  readonly port: number;
  /** Connection details as `source add` takes them after name and type, for this host. */
  words(host: string): readonly string[];
  readonly variables: readonly SimulatedVariable[];
  /** Further facts that a person needs to read it. */
  readonly notes: readonly string[];
  /** From now on exactly these are wrong. */
  plant(faults: readonly SimulatedFault[]): Promise<void>;
  close(): Promise<void>;
}

/** The export `simulation` of the simulators' module. */
export interface Simulation {
  /** The package's version, equal to the collector's. */
  readonly version: string;
  readonly machines: readonly SimulatedMachine[];
}
