import type { TypeFacts } from "../facts.ts";

export const facts = {
  type: "odac",
  title: "ODAC",
  tradeWords: [],
  created: { name: "lathe-1", details: { type: "odac", host: "192.168.0.17" } },
  examples: {},
} as const satisfies TypeFacts<"odac">;
