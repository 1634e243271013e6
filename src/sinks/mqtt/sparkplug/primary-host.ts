import { Buffer } from "node:buffer";

/** A STATE message of some hundred bytes is plenty. */
const MAX_STATE_BYTES = 4096;

/** The primary host application as its STATE messages of one connection tell (Sparkplug 3.0, 5.2 and 5.8). */
export class PrimaryHost {
  #isOnline = false;
  #timestamp = Number.NEGATIVE_INFINITY;

  get isOnline(): boolean {
    return this.#isOnline;
  }

  /** A STATE message. What is none is ignored, as is one that is older than the one before. Returns whether the host is online. Never throws. */
  take(payload: Uint8Array): boolean {
    const state = stateIn(payload);
    if (!state || state.timestamp < this.#timestamp) return this.#isOnline;
    this.#timestamp = state.timestamp;
    this.#isOnline = state.online;
    return this.#isOnline;
  }
}

function stateIn(payload: Uint8Array): { readonly online: boolean; readonly timestamp: number } | undefined {
  if (payload.length > MAX_STATE_BYTES) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(payload).toString());
  } catch {
    return undefined;
  }
  if (typeof parsed !== "object" || parsed === null || !("online" in parsed) || !("timestamp" in parsed)) return undefined;
  const { online, timestamp } = parsed;
  return typeof online === "boolean" && typeof timestamp === "number" && Number.isFinite(timestamp) ? { online, timestamp } : undefined;
}
