import type { SinkFacts } from "../facts.ts";
import { settingsSchema } from "./settings.ts";
import { dataTopic, parseTopic } from "./topics.ts";

export const facts = {
  type: "mqtt",
  title: "MQTT 5 and 3.1.1",
  manual: { topic: "mqtt", about: "an MQTT broker, its topics and messages" },
  delivery: "every",
  takesExploration: false,
  settings: settingsSchema,
  created: { name: "hall 3", details: { type: "mqtt", host: "broker.plant.example", topic: "hall3/{source}/{variable}" } },
  examples: [
    "collector sink add plant mqtt host=10.0.0.2 topic='plant/{source}'",
    "sudo collector sink add plant mqtt host=broker.example port=8883 topic='plant/{source}' tls.ca_file=ca.pem username=line-3",
  ],
  placeOf: ({ topic }, source, { name }) => (typeof topic === "string" ? `topic ${dataTopic(parseTopic(topic), source, name)}` : undefined),
} as const satisfies SinkFacts<"mqtt">;
