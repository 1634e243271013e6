/**
 * Why a sink will never get values: dropped because the buffer was full, they were too old, their bytes on disk had changed, or the server
 * refuses them; never accepted, because the disk took nothing or no memory was left; lost with a damaged, emptied or replaced file, an
 * unknown number.
 */
export const LOSS_REASONS = ["buffer_full", "too_old", "damaged", "refused", "not_stored", "overflow", "lost"] as const;
export type LossReason = (typeof LOSS_REASONS)[number];

/**
 * Why values are missing, as it is published. newer_version: nothing is lost, but they wait in a file that only a newer version of the collector
 * reads; it delivers them and takes the gap back. No reason of the platform's, which is told of losses alone.
 */
export type GapReason = LossReason | "newer_version";

export const isLossReason = (reason: GapReason): reason is LossReason => reason !== "newer_version";
