import path from "node:path";
import { personalAccess, requesterAccess } from "../../api/access.ts";
import { CLIENT_TIMEOUTS } from "../../api/client.ts";
import { createRequester } from "../../api/requester.ts";
import type { Settings } from "../../model/settings.ts";
import type { Diagnosis } from "./doctor-checks.ts";

/** Of an answer that is looked at for nothing but its coming. */
const MAX_BYTES = 2 ** 20;

/** True: the configuration API of the settings answers, and takes the key; undefined: it is the embedded one. Never throws. */
export async function apiCheck({ api, ...settings }: Settings, signal: AbortSignal): Promise<Diagnosis | undefined> {
  if (!api) return undefined;
  const access = personalAccess({ api, ...settings }, path.resolve(settings.state_dir), undefined);
  const requester = createRequester({ ...requesterAccess(access), timeouts: CLIENT_TIMEOUTS });
  try {
    // With the first page of a list that every platform has: what a platform does not offer may have the answer of a key that is refused.
    const answer = await requester.send({ method: "GET", path: "/v2/data-sources", maxBytes: MAX_BYTES, signal });
    const nextStep = answer.type === "failed" ? stepFor(answer.status) : undefined;
    if (answer.type === "failed" && nextStep !== undefined)
      return { check: "api", result: "failed", detail: answer.message, next_step: nextStep };
    return { check: "api", result: "ok", detail: `${requester.base} answers`, next_step: null };
  } finally {
    requester.close();
  }
}

/** What to do about a request that failed with this status, or without one; undefined: the API answers. */
function stepFor(status: number | undefined): string | undefined {
  if (status === undefined) return "Correct api.url in the settings, or make the API answer there; the collector asks it again.";
  if (status === 401 || status === 403)
    return "Put a key that the API takes into the file api.key_file of the settings names; it is read for each request.";
  return status >= 500 ? "Look into the log of the API; the collector asks it again." : undefined;
}
