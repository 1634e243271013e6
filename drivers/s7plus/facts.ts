import type { TypeFacts } from "../facts.ts";

export const facts = {
  type: "s7plus",
  title: "Siemens S7plus",
  standardPort: 102,
  usualPort: 102,
  tradeWords: ["siemens", "simatic", "step7", "tia", "s71200", "s71500", "s7comm", "profinet"],
  created: {
    name: "palletizer-1",
    details: { type: "s7plus", host: "192.168.0.19", port: 102, password: { type: "set", value: "write-only" } },
  },
  examples: {
    read: ["collector read s7plus host=10.0.0.9 '\"Motor_DB\".speed' '\"Temp 1\"' 8A0E0001.11"],
    browse: ["collector browse s7plus host=10.0.0.9 --filter 'Motor_DB/*'"],
  },
} as const satisfies TypeFacts<"s7plus">;
