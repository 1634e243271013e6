import { DETAILS, type VendorGatewayDetails } from "../../src/model/details.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import { defineDriver } from "../driver.ts";
import { type GatewayAddress, parseAddress } from "./address.ts";
import { facts } from "./facts.ts";
import { answerBytes, describeRead, type GatewayLimits, type GatewayRead, plan, planSteps } from "./plan.ts";
import { endpointOf, GatewaySession } from "./session.ts";
import { type GatewaySettings, settingsSchema } from "./settings.ts";

/** The place where the reference gateway listens. */
const USUAL_PORT = 7000;
const LOOPBACK = /^(?:127\.\d{1,3}\.\d{1,3}\.\d{1,3}|localhost|::1)$/i;

function warningsOf({ host }: VendorGatewayDetails, { security }: GatewaySettings): readonly Warning[] {
  if (security !== "none" || LOOPBACK.test(host)) return [];
  return [warning("no_encryption", "security is `none`: anyone on the network can read along and change what is read")];
}

const ENCRYPTION = { none: "none", psk: "TLS with a pre-shared key", certificate: "TLS" } as const;

export default defineDriver<VendorGatewayDetails, GatewaySettings, GatewayAddress, GatewayRead, GatewayLimits>({
  type: facts.type,
  title: facts.title,
  details: DETAILS.vendor_gateway.read,
  settings: settingsSchema,
  // A program on a computer; each source has a server of its own there.
  maxConnections: 8,
  usualPort: USUAL_PORT,
  canDiscover: true,
  endpoint: endpointOf,
  encryption: (_, { security }) => ENCRYPTION[security],
  keepsConnection: () => true,
  warningsOf,
  parseAddress: (text, type) => parseAddress(text, type),
  describe: describeRead,
  answerBytes,
  plan,
  planSteps,
  connect: (input, ctx) => GatewaySession.connect(input, ctx),
});
