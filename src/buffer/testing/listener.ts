import type { StoreListener } from "../store.ts";

/** A listener that takes all and looks at nothing: a test replaces the parts that it needs. */
export const deafListener: Omit<StoreListener, "ready"> = {
  committed: () => {},
  rejected: () => {},
  ledger: () => {},
  alarm: () => {},
  note: () => {},
  sinks: () => {},
  stored: () => {},
  unstored: () => {},
  shown: () => {},
  takesUnstored: () => "none",
  losses: () => {},
};
