import { atOnce, type Steps } from "../../src/base/timer.ts";
import { DETAILS, type VendorADetails } from "../../src/model/details.ts";
import { defineDriver, type Point } from "../driver.ts";
import { parseType, wireOf } from "./address.ts";
import { connect, endpointOf } from "./connect.ts";
import { facts } from "./facts.ts";
import { frameWords } from "./frame-words.ts";
import { isVariableRead, planVariables } from "./omron/plan.ts";
import { parseAddress } from "./parse.ts";
import { fileWire } from "./pccc/address.ts";
import { planFileSteps } from "./pccc/plan.ts";
import { describeRead, planSteps as planTagSteps } from "./plan.ts";
import { type CipSettings, MOST_FILE_BYTES, settingsSchema } from "./settings.ts";
import { type AnyAddress, type AnyRead, byVariantSteps, isFileAddress, isFileRead, type VendorALimits } from "./variants.ts";

function* planSteps(points: readonly Point<AnyAddress>[], limits: VendorALimits, apart?: ReadonlySet<Point>): Steps<AnyRead[]> {
  const { tags, files } = yield* byVariantSteps(points);
  // A session has one kind of controller, where all of its tags were looked up.
  const reads: AnyRead[] = tags[0]?.address.variable ? yield* planVariables(tags, limits, apart) : yield* planTagSteps(tags, limits, apart);
  for (const read of yield* planFileSteps(files, limits, apart)) reads.push(read);
  return reads;
}

export default defineDriver<VendorADetails, CipSettings, AnyAddress, AnyRead, VendorALimits>({
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
  connectionKey: (_details, { path, connection_size, connected, family }) => ["cip", path, connection_size, connected, family].join(" "),
  limits: (granted, { in_flight = 1, max_file_bytes }) => ({
    ...granted,
    inFlight: Math.min(granted.inFlight, in_flight),
    fileBytes: Math.min(granted.fileBytes, max_file_bytes),
  }),
  habitSettings(habit, value) {
    if (habit === "small_blocks" && value <= MOST_FILE_BYTES) return { max_file_bytes: Math.max(2, value) };
    if (habit === "several_in_flight") return { in_flight: value };
    return habit === "one_in_flight" ? { in_flight: 1 } : undefined;
  },
  otherWays: (details, settings) =>
    settings.path === "auto" ? [] : [{ words: "path auto", fields: ["path=auto"], details, settings: { ...settings, path: "auto" } }],
  parseType,
  parseAddress,
  describe: (request) =>
    isFileRead(request) ? request.item.name : isVariableRead(request) ? request.variable.name : describeRead(request),
  frameWords,
  wireOf: (address) => (isFileAddress(address) ? fileWire(address) : wireOf(address)),
  answerBytes(request) {
    if (isFileRead(request)) return request.item.bytes;
    return isVariableRead(request) ? request.variable.bytes : request.items.reduce((sum, { bytes }) => sum + bytes, 0);
  },
  plan: (points, limits, apart) => atOnce(planSteps(points, limits, apart)),
  planSteps,
  connect,
});
