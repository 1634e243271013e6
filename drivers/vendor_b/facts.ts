import type { TypeFacts } from "../facts.ts";

export const facts = {
  type: "vendor_b",
  title: "Vendor B",
  tradeWords: [],
  created: { name: "mould-1", details: { type: "vendor_b", host: "192.168.0.13", machine: "C6", initialization_mode: "Default" } },
  examples: {},
} as const satisfies TypeFacts<"vendor_b">;
