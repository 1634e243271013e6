import { DETAILS, type OpcuaDetails } from "../../src/model/details.ts";
import { warning } from "../../src/model/warning.ts";
import { defineDriver, type Limits } from "../driver.ts";
import { isCounted, type OpcuaAddress, parseAddress, wireOf } from "./address.ts";
import { facts } from "./facts.ts";
import { lastingAddress } from "./first-namespaces.ts";
import { frameWords } from "./frame-words.ts";
import { MACHINE_PROFILES, machineProfile } from "./machine-profiles.ts";
import { type OpcuaRead, plan, planSteps } from "./plan.ts";
import { secondProblem } from "./second-server.ts";
import { type OpcuaSettings, settingsSchema } from "./settings.ts";
import { warningsOf } from "./warnings.ts";

const endpoint = ({ host, port }: OpcuaDetails) => ({ host, port, transport: "tcp" as const });

// node-opcua takes a second and fifty megabytes to load: only who reads OPC UA pays for it.
let session: typeof import("./session.ts") | undefined;

async function loaded(): Promise<typeof import("./session.ts")> {
  session ??= await import("./session.ts");
  return session;
}

export default defineDriver<OpcuaDetails, OpcuaSettings, OpcuaAddress, OpcuaRead, Limits>({
  type: facts.type,
  title: facts.title,
  standardPort: facts.standardPort,
  details: DETAILS.opcua.read,
  settings: settingsSchema,
  maxConnections: 10,
  canDiscover: true,
  endpoint,
  encryption: ({ security_settings: { security_mode: mode, endpoint_security_policy: policy } }) =>
    mode === "None" ? "none" : `OPC UA ${mode} (${policy})`,
  keepsConnection: () => true,
  warningsOf,
  problemOf(details, settings) {
    const detail = secondProblem(details, settings);
    return detail === undefined ? undefined : { condition: "configuration_invalid", detail };
  },
  parseAddress,
  wireOf,
  frameWords,
  renumbered: {
    has: isCounted,
    warning: (count, source) =>
      warning(
        "addresses_renumberable",
        `${count} of its addresses ${count === 1 ? "names its namespace" : "name their namespaces"} by index (ns=), which a server may renumber when it starts: \`sudo collector variables nsu ${source}\` rewrites them with URIs (nsu=)`,
      ),
    lasting: (address, kept, details) => lastingAddress(address, kept, details.endpoint_url),
  },
  machineProfiles: { names: MACHINE_PROFILES, of: machineProfile },
  plan,
  planSteps,
  load: () => (session ? undefined : loaded().then(() => undefined)),
  async connect(input, ctx) {
    return (await loaded()).connect(input, endpoint(input.details), ctx);
  },
});
