import { OPCUA_PORT } from "../../src/model/endpoint-url.ts";
import type { TypeFacts } from "../facts.ts";

export const facts = {
  type: "opcua",
  title: "OPC UA",
  standardPort: OPCUA_PORT,
  inWorker: true,
  certificates: true,
  tradeWords: ["ua", "opc", "opcua", "beckhoff", "codesys", "kepware"],
  created: {
    name: "line-2",
    details: {
      type: "opcua",
      host: "192.168.0.15",
      port: OPCUA_PORT,
      endpoint_url: "opc.tcp://192.168.0.15:4840/plant",
      security_settings: {
        security_mode: "SignAndEncrypt",
        endpoint_security_policy: "Basic256Sha256",
        token_security_policy: "Basic256Sha256",
      },
      user_identity: { type: "UserNamePassword", username: "reader", password: "write-only" },
    },
  },
  examples: {
    "source add": [
      "collector source add line-2 opcua endpoint_url=opc.tcp://10.0.0.7:4840 endpoint_security_policy=Basic256Sha256 username=reader",
      "collector source add line-5 opcua endpoint_url=opc.tcp://10.0.0.9:4840 username=reader --password-file pw.txt",
    ],
    read: [
      "collector read opcua endpoint_url=opc.tcp://10.0.0.7:4840 i=2258 'ns=2;s=Press.Temperature'",
      "collector read opcua endpoint_url=opc.tcp://10.0.0.7 username=reader 'nsu=http://example.com/press;s=Counter'",
      "collector read opcua endpoint_url=opc.tcp://10.0.0.7 security_mode=SignAndEncrypt \\",
      "  endpoint_security_policy=Basic256Sha256 trust=first_use /Objects/2:Press/2:Temperature",
    ],
    browse: ["collector browse opcua endpoint_url=opc.tcp://10.0.0.7:4840"],
    probe: ["collector probe opcua endpoint_url=opc.tcp://10.0.0.7:4840 username=reader"],
  },
} as const satisfies TypeFacts<"opcua">;
