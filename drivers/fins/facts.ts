import type { TypeFacts } from "../facts.ts";

export const facts = {
  type: "fins",
  title: "Omron FINS",
  standardPort: 9600,
  tradeWords: ["omron", "sysmac", "cj2", "cp1", "nj", "nx"],
  created: { name: "filler-1", details: { type: "fins", host: "192.168.0.14", local_address: "0.99.0", remote_address: "0.10.0" } },
  examples: {
    "source add": ["collector source add filler fins host=10.0.0.9 local_address=0.0.0 remote_address=0.10.0"],
    read: ["collector read fins host=10.0.0.9 local_address=0.0.0 remote_address=0.10.0 D100:uint16 D102:real W10.03 T5"],
  },
} as const satisfies TypeFacts<"fins">;
