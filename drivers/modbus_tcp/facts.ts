import type { TypeFacts } from "../facts.ts";

export const facts = {
  type: "modbus_tcp",
  title: "Modbus TCP",
  standardPort: 502,
  tradeWords: ["modbus", "modbustcp", "modbusrtu", "schneider", "wago"],
  created: { name: "press-1", details: { type: "modbus_tcp", host: "192.168.0.10" } },
  examples: {
    "source add": [
      "collector source add press-1 modbus_tcp host=10.0.0.5 unit=3 --interval 5s",
      "collector source add meter-1 modbus_tcp host=10.0.0.9 port=4001 framing=rtu unit=7 --interval 10s",
    ],
    read: [
      "collector read modbus_tcp host=10.0.0.5 holding:0:uint16 holding:10:float32",
      "collector read modbus_tcp host=10.0.0.5 port=1502 unit=3 order=CDAB input:100:int32 --json",
      "collector read modbus_tcp host=10.0.0.9 port=4001 framing=rtu transport=udp 7/input:0:float32",
      "collector read modbus_tcp host=10.0.0.5 file4:9:float32 holding32:7001:float32",
      "collector read modbus_tcp host=10.0.0.5 coil:0 --count 10 --interval 500ms",
    ],
    probe: ["collector probe modbus_tcp host=10.0.0.5 holding:0:uint16"],
  },
} as const satisfies TypeFacts<"modbus_tcp">;
