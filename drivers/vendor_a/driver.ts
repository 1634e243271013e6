import { DETAILS, type VendorADetails } from "../../src/model/details.ts";
import { defineDriver } from "../driver.ts";
import { type CipAddress, parseAddress, parseType, wireOf } from "./address.ts";
import { facts } from "./facts.ts";
import { frameWords } from "./frame-words.ts";
import { type CipLimits, type CipRead, describeRead, plan, planSteps } from "./plan.ts";
import { CipSession, endpointOf } from "./session.ts";
import { type CipSettings, settingsSchema } from "./settings.ts";

export default defineDriver<VendorADetails, CipSettings, CipAddress, CipRead, CipLimits>({
  type: facts.type,
  title: facts.title,
  standardPort: facts.standardPort,
  details: DETAILS.vendor_a.read,
  settings: settingsSchema,
  // Controllers have few connections, and engineers need some of them.
  maxConnections: 1,
  canDiscover: true,
  endpoint: endpointOf,
  keepsConnection: () => true,
  connectionKey: (_details, { path, connection_size, connected }) => ["cip", path, connection_size, connected].join(" "),
  limits: (granted, { in_flight }) => ({ ...granted, inFlight: Math.min(granted.inFlight, in_flight) }),
  habitSettings: (habit) => (habit === "one_in_flight" ? { in_flight: 1 } : undefined),
  otherWays: (details, settings) =>
    settings.path === "auto" ? [] : [{ words: "path auto", fields: ["path=auto"], details, settings: { ...settings, path: "auto" } }],
  parseType,
  parseAddress,
  describe: describeRead,
  frameWords,
  wireOf,
  answerBytes: ({ items }) => items.reduce((sum, { bytes }) => sum + bytes, 0),
  plan,
  planSteps,
  connect: (input, ctx) => CipSession.connect(input, ctx),
});
