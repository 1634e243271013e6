import type { TypeFacts } from "../facts.ts";

export const facts = {
  type: "s7",
  title: "Siemens S7",
  standardPort: 102,
  tradeWords: [
    ...["siemens", "simatic", "step7", "tia", "s71200", "s71500", "s7comm", "profinet"],
    ...["s7300", "s7400", "s7200", "logo", "iso", "rfc1006"],
  ],
  created: { name: "mixer-1", details: { type: "s7", host: "192.168.0.12", slot: 1 } },
  examples: {
    "source add": ["collector source add plc-3 s7 host=10.0.0.8 slot=1 --machine 'Press 3'"],
    read: ["collector read s7 host=10.0.0.8 slot=1 DB1.DBD4:real DB10.DBX0.1 MW20 'DB2.DBB0:STRING[20]'"],
  },
} as const satisfies TypeFacts<"s7">;
