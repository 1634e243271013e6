/** Two clocks: a monotonic one for schedules, and the wall clock for time stamps, carried by the monotonic one between steps. */
export interface Clock {
  /** Ms on a scale that was the epoch's when the process started and that no step of the wall clock moves. */
  monotonicMs(): number;
  /** Epoch ms, UTC. */
  epochMs(): number;
  /** Whether the system says that its clock is synchronised. */
  synced(): boolean;
}
