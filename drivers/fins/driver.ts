import { DETAILS, type FinsDetails } from "../../src/model/details.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import { defineDriver } from "../driver.ts";
import { type FinsVariable, parseAddress, wireOf } from "./address.ts";
import { facts } from "./facts.ts";
import { frameWords } from "./frame-words.ts";
import { describeRead, type FinsLimits, type FinsRead, plan, planSteps } from "./plan.ts";
import { FinsSession } from "./session.ts";
import { type FinsSettings, settingsSchema } from "./settings.ts";
import { endpointOf, otherWays } from "./target.ts";
import { parseType } from "./types.ts";

/** Requests under way at once where neither the settings nor a habit of the controller say it. */
const IN_FLIGHT = 2;

export default defineDriver<FinsDetails, FinsSettings, FinsVariable, FinsRead, FinsLimits>({
  type: facts.type,
  title: facts.title,
  standardPort: facts.standardPort,
  details: DETAILS.fins.read,
  settings: settingsSchema,
  // Two connections of one node refuse each other, and serial routes hold one request at a time.
  maxConnections: 1,
  endpoint: endpointOf,
  keepsConnection: () => true,
  connectionKey({ target_plc, local_address, remote_address }, { transport, local_port, plc_series, retransmissions }) {
    return ["fins", transport, local_port, retransmissions, local_address, remote_address, target_plc, plc_series].join(" ");
  },
  warningsOf({ target_plc }, { plc_series, transport, local_port }) {
    const found: Warning[] = [];
    if (target_plc !== "Classic" && plc_series !== "auto")
      found.push(warning("setting_without_effect", `plc_series ${plc_series} has no effect: target_plc is ${target_plc}`, "plc_series"));
    if (transport === "tcp" && local_port > 0)
      found.push(warning("setting_without_effect", `local_port ${local_port} has no effect: it is for UDP`, "local_port"));
    return found;
  },
  limits: (granted, { max_words, max_items, max_gap, in_flight = IN_FLIGHT }) => ({
    ...granted,
    maxWords: Math.min(granted.maxWords, max_words),
    maxItems: Math.min(granted.maxItems, max_items),
    maxGap: max_gap,
    inFlight: Math.min(granted.inFlight, in_flight),
  }),
  habitSettings(habit, value) {
    if (habit === "several_in_flight") return { in_flight: value };
    return habit === "one_in_flight" ? { in_flight: 1 } : undefined;
  },
  otherWays,
  parseType,
  parseAddress,
  describe: describeRead,
  frameWords,
  wireOf,
  answerBytes: ({ dataBytes }) => dataBytes,
  plan,
  planSteps,
  connect: (input, ctx) => FinsSession.connect(input, ctx),
});
