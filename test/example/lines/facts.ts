import { z } from "zod";
import type { SinkFacts } from "../../../src/sinks/facts.ts";

// cut: facts
/** The local options of a sink: strict, each with a description and a default. */
const settings = z.strictObject({
  in_flight: z.int().min(1).max(16).default(4).describe("Batches under way at once: 1 to 16"),
  answer_ms: z.int().min(100).max(60_000).default(5000).describe("Deadline of an answer, in ms: 100 to 60000"),
});
export type LinesSettings = z.infer<typeof settings>;

export const facts = {
  type: "lines",
  title: "Lines of JSON over TCP",
  manual: { topic: "lines", about: "a receiver of lines of JSON" },
  delivery: "every",
  takesExploration: false,
  settings,
  created: { name: "hall 3", details: { type: "lines", host: "192.168.0.20", port: 7010 } },
  examples: ["collector sink add hall-3 lines host=10.0.0.20 port=7010"],
  placeOf: (_, source, { name }) => `the lines of ${source}, variable ${name}`,
} as const satisfies SinkFacts<"lines">;
// cut: end
