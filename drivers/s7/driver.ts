import { DETAILS, type S7Details } from "../../src/model/details.ts";
import { defineDriver } from "../driver.ts";
import { parseType } from "../lib/step7-types.ts";
import { parseAddress, type S7Address, wireOf } from "./address.ts";
import { facts } from "./facts.ts";
import { frameWords } from "./frame-words.ts";
import { describeRead, plan, planSteps, type S7Limits, type S7Read } from "./plan.ts";
import { endpointOf, S7Session } from "./session.ts";
import { type S7Settings, settingsSchema } from "./settings.ts";
import { otherWays, tsapsOf } from "./target.ts";

export default defineDriver<S7Details, S7Settings, S7Address, S7Read, S7Limits>({
  type: facts.type,
  title: facts.title,
  standardPort: facts.standardPort,
  details: DETAILS.s7.read,
  settings: settingsSchema,
  // Controllers have few connections, and engineers need some of them.
  maxConnections: 1,
  endpoint: endpointOf,
  keepsConnection: () => true,
  connectionKey({ rack, slot }, settings) {
    const to = tsapsOf(settings) ?? [rack, slot];
    return ["s7", settings.connection_type, ...to, settings.pdu_size].join(" ");
  },
  limits: (granted, { max_items, max_gap, in_flight }) => ({
    ...granted,
    maxItems: Math.min(granted.maxItems, max_items),
    maxGap: max_gap,
    inFlight: Math.min(granted.inFlight, in_flight),
  }),
  habitSettings: (habit) => (habit === "one_in_flight" ? { in_flight: 1 } : undefined),
  otherWays,
  parseType,
  parseAddress,
  describe: describeRead,
  frameWords,
  wireOf,
  answerBytes: ({ items }) => items.reduce((sum, { bytes }) => sum + bytes, 0),
  plan,
  planSteps,
  connect: (input, ctx) => S7Session.connect(input, ctx),
});
