import type { SinkFacts } from "../facts.ts";

export const facts = {
  type: "platform",
  title: "The platform: the configuration API itself",
  manual: { topic: "platform", about: "the platform" },
  delivery: "every",
  takesExploration: true,
  created: { name: "platform", details: { type: "platform" } },
  examples: ["collector sink add platform platform"],
} as const satisfies SinkFacts<"platform">;
