import type { TypeFacts } from "../facts.ts";

export const facts = {
  type: "plastcontrol",
  title: "Plastcontrol",
  tradeWords: [],
  created: {
    name: "film-1",
    details: { type: "plastcontrol", host: "192.168.0.18", port: 4000, readout_mode: { type: "active" } },
  },
  examples: {},
} as const satisfies TypeFacts<"plastcontrol">;
