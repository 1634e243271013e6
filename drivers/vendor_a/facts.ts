import type { TypeFacts } from "../facts.ts";

export const facts = {
  type: "vendor_a",
  title: "EtherNet/IP (Logix, Micro800, MicroLogix, SLC 500, PLC-5, Omron NJ/NX)",
  standardPort: 44_818,
  tradeWords: [
    "ethernetip",
    "enip",
    "cip",
    "logix",
    "controllogix",
    "compactlogix",
    "micro800",
    "micro850",
    "pccc",
    "micrologix",
    "slc500",
    "plc5",
    "allenbradley",
    "rockwell",
    "ab",
    "sysmac",
    "nj501",
    "nx102",
    "njnx",
  ],
  created: { name: "packer-1", details: { type: "vendor_a", host: "192.168.0.11" } },
  examples: {
    read: [
      "collector read vendor_a host=10.0.0.10 Boxes 'Temperatures[1]' Program:Main.Cycle Status.5",
      "collector read vendor_a host=10.0.0.12 N7:0 B3/37 F8:1 T4:2.ACC",
      "collector read vendor_a host=10.0.0.13 Recipe1.Speed 'Temps[1]' _CurrentTime",
    ],
    browse: ["collector browse vendor_a host=10.0.0.10 --filter 'Program:Main/*'"],
  },
} as const satisfies TypeFacts<"vendor_a">;
