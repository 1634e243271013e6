import type { SinkFacts } from "../facts.ts";

export const facts = {
  type: "opcua",
  title: "OPC UA server, hosted by the collector",
  manual: { topic: "opcua-server", about: "the OPC UA server that the collector hosts" },
  delivery: "latest",
  takesExploration: false,
  created: {
    name: "scada",
    details: { type: "opcua", port: 4842, path: "/collector", users: [{ username: "scada", password: "write-only" }] },
  },
  examples: [
    "collector sink add server opcua port=4840 --user reader",
    "collector sink add server opcua security_modes=SignAndEncrypt --user reader=pw.txt --user scada=pw2.txt",
  ],
} as const satisfies SinkFacts<"opcua">;
