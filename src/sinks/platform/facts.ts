import type { SinkFacts } from "../facts.ts";
import { settingsSchema } from "./settings.ts";

export const facts = {
  type: "platform",
  title: "The platform: the configuration API itself",
  manual: { topic: "platform", about: "the platform" },
  delivery: "every",
  takesExploration: true,
  settings: settingsSchema,
  created: { name: "platform", details: { type: "platform" } },
  examples: ["collector sink add platform platform"],
  placeOf: (_, __, { uuid }) => `variable ${uuid}`,
} as const satisfies SinkFacts<"platform">;
