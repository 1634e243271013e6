/**
 * Why a sink will never get values, as it is published: dropped because the buffer was full, they were too old, their bytes on disk had
 * changed, or the server refuses them; never accepted, because the disk took nothing or no memory was left; lost with a damaged, emptied or
 * replaced file, an unknown number.
 */
export const LOSS_REASONS = ["buffer_full", "too_old", "damaged", "refused", "not_stored", "overflow", "lost"] as const;
export type LossReason = (typeof LOSS_REASONS)[number];
