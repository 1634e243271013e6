import type { Request } from "../../../drivers/driver.ts";
import { healthyIntervalMs, mayWaitInFull, ownTimeoutMs, probeTimeoutMs } from "../device-time.ts";
import { areSeveral, isUnheard, TRIES } from "./facts.ts";
import { isOneOfSeveral } from "./parts.ts";
import { isSearching } from "./runs.ts";
import type { State } from "./state.ts";

/**
 * How long a planned request is waited for, ms. One that has given no answer so far is waited for as long as the device takes as a rule, where
 * that is known; each fifth time for as long as any request.
 */
export function plannedTimeoutMs(state: State, request: Request, nowMs: number): number {
  const { plan, device, user, readout } = state;
  const { unanswered, isHeard } = plan.known;
  const { fullMs, hasFailure } = readout;
  const { part } = request;
  const isShared = healthyIntervalMs(device, user, nowMs) !== undefined || isOneOfSeveral(state, part);
  if (isShared ? mayWaitInFull(device, user, nowMs) : unanswered % TRIES === TRIES - 1) return fullMs;
  const isUnanswered = unanswered > 0 || (!isHeard && part !== undefined) || hasFailure;
  const isInTrouble = isUnheardOfSeveral(state, part) || (readout.answered === 0 ? isUnanswered : hasFailure && isUnheard(state, part));
  const isDoubtful = isInTrouble || isSearching(state, part);
  const hasFailed = isShared && isHeard && unanswered > 0;
  if (isDoubtful && !hasFailed) return probeTimeoutMs(device, fullMs, nowMs);
  return isShared && isHeard ? ownTimeoutMs(device, user, fullMs, nowMs) : fullMs;
}

/** True: the part is one of several of which others have answered, and has not answered yet. */
function isUnheardOfSeveral(state: State, part: string | undefined): boolean {
  const { heard } = state.plan.known;
  return part !== undefined && heard.size > 0 && !heard.has(part) && areSeveral(state);
}
