import { atOnce, type Steps } from "../../src/base/timer.ts";
import { DETAILS, type VendorADetails } from "../../src/model/details.ts";
import { defineDriver, type Point } from "../driver.ts";
import { type CipAddress, parseAddress, parseType, wireOf } from "./address.ts";
import { connect, endpointOf } from "./connect.ts";
import { facts } from "./facts.ts";
import { frameWords } from "./frame-words.ts";
import { isVariableRead, planVariables, type VariableRead } from "./omron/plan.ts";
import { type CipLimits, type CipRead, describeRead, planSteps } from "./plan.ts";
import { type CipSettings, settingsSchema } from "./settings.ts";

type AnyRead = CipRead | VariableRead;

/** A session has one kind of controller, and its points were all looked up there. */
function* planAny(points: readonly Point<CipAddress>[], limits: CipLimits, apart?: ReadonlySet<Point>): Steps<AnyRead[]> {
  return points[0]?.address.variable ? yield* planVariables(points, limits, apart) : yield* planSteps(points, limits, apart);
}

export default defineDriver<VendorADetails, CipSettings, CipAddress, AnyRead, CipLimits>({
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
  describe: (request) => (isVariableRead(request) ? request.item.name : describeRead(request)),
  frameWords,
  wireOf,
  answerBytes: (request) => (isVariableRead(request) ? request.item.bytes : request.items.reduce((sum, { bytes }) => sum + bytes, 0)),
  plan: (points, limits, apart) => atOnce(planAny(points, limits, apart)),
  planSteps: planAny,
  connect,
});
