import type { SinkFacts } from "../../../src/sinks/facts.ts";

// cut: facts
export const facts = {
  type: "lines",
  title: "Lines of JSON over TCP",
  manual: { topic: "lines", about: "a receiver of lines of JSON" },
  delivery: "every",
  takesExploration: false,
  created: { name: "hall 3", details: { type: "lines", host: "192.168.0.20", port: 7010 } },
  examples: ["collector sink add hall-3 lines host=10.0.0.20 port=7010"],
} as const satisfies SinkFacts<"lines">;
// cut: end
