import type { TypeFacts } from "../facts.ts";

export const facts = {
  type: "vendor_gateway",
  title: "Gateway (OPC DA, PVI)",
  certificates: true,
  tradeWords: ["opcda", "pvi"],
  created: {
    name: "oven-1",
    details: {
      type: "vendor_gateway",
      host: "192.168.0.16",
      port: 7000,
      protocol_details: { protocol: "OPC_DA", server_name: "Plant.OpcDa.1" },
    },
  },
  examples: {
    "source add": ["collector source add capper vendor_gateway host=10.0.0.11 port=7000 protocol=OPC_DA server_name=Plant.OpcDa.1"],
    read: ["collector read vendor_gateway host=10.0.0.11 protocol=OPC_DA server_name=Plant.OpcDa.1 Press.Force"],
    browse: ["collector browse vendor_gateway host=10.0.0.11 protocol=PVI path=@Pvi/LN1/Line/Cpu/Main"],
  },
} as const satisfies TypeFacts<"vendor_gateway">;
