import { DETAILS, type S7plusDetails } from "../../src/model/details.ts";
import { defineDriver } from "../driver.ts";
import { parseType } from "../lib/step7-types.ts";
import { otherMeaning, type PlusAddress, parseAddress, wireOf } from "./address.ts";
import { facts } from "./facts.ts";
import { frameWords } from "./frame-words.ts";
import { describeRead, type PlusLimits, type PlusRead, plan, planSteps } from "./plan.ts";
import { endpointOf, S7plusSession } from "./session.ts";
import { type S7plusSettings, settingsSchema } from "./settings.ts";

const TSAPS = ["SIMATIC-ROOT-ES", "SIMATIC-ROOT-HMI"] as const;

export default defineDriver<S7plusDetails, S7plusSettings, PlusAddress, PlusRead, PlusLimits>({
  type: facts.type,
  title: facts.title,
  standardPort: facts.standardPort,
  details: DETAILS.s7plus.read,
  settings: settingsSchema,
  // Controllers have few connections, and engineers need some of them.
  maxConnections: 1,
  // TSAPs are behind the port of ISO transport (RFC 1006).
  usualPort: facts.usualPort,
  canDiscover: true,
  endpoint: endpointOf,
  encryption: () => "TLS",
  keepsConnection: () => true,
  limits: (granted, { max_items }) => ({ ...granted, maxItems: Math.min(granted.maxItems, max_items) }),
  otherWays: (details, settings) =>
    TSAPS.filter((tsap) => tsap !== details.destination_tsap).map((tsap) => ({
      words: tsap,
      fields: [`destination_tsap=${tsap}`],
      details: { ...details, destination_tsap: tsap },
      settings,
    })),
  parseType,
  parseAddress,
  otherMeaning,
  describe: describeRead,
  frameWords,
  wireOf,
  plan,
  planSteps,
  connect: (input, ctx) => S7plusSession.connect(input, ctx),
});
