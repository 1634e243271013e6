import type { SinkFacts } from "../facts.ts";

export const facts = {
  type: "mqtt",
  title: "MQTT 5 and 3.1.1",
  manual: { topic: "mqtt", about: "an MQTT broker, its topics and messages" },
  delivery: "every",
  takesExploration: false,
  created: { name: "hall 3", details: { type: "mqtt", host: "broker.plant.example", topic: "hall3/{source}/{variable}" } },
  examples: [
    "collector sink add plant mqtt host=10.0.0.2 topic='plant/{source}'",
    "sudo collector sink add plant mqtt host=broker.example port=8883 topic='plant/{source}' tls.ca_file=ca.pem username=line-3",
  ],
} as const satisfies SinkFacts<"mqtt">;
