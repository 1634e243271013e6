import * as z from "zod";
import { isProbeRefused, NOT_OFFERED } from "../../api/offers.ts";
import type { ApiAnswer, ApiFailure } from "../../api/requester.ts";
import { extensionInfoSchema } from "../../api/routes/extensions.ts";
import { errorCode, toReasonError } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";

/** What an answer to `POST /ext/v1/values` says of the values that were sent. */
export type Verdict =
  /** The API holds them, but for `refused` of them. */
  | { readonly type: "taken"; readonly refused: number; readonly detail?: string }
  /** The request is larger than the API, or something before it, takes. */
  | { readonly type: "too_large"; readonly detail: string }
  /** It will never take them; `places` among the values sent, none: all of them. */
  | { readonly type: "refused"; readonly places: ReadonlySet<number>; readonly detail: string }
  /** Nothing is known of them: the connection is lost. */
  | { readonly type: "lost"; readonly reason: ReasonError };

const NOT_YET = 202;
const NOT_YET_WORDS =
  "POST /ext/v1/values answered 202: the platform has the values in hand and does not say that it keeps them; they are sent again until it answers 200";

const takenSchema = z.object({ accepted: z.int(), duplicate: z.boolean() });

/** Pure. `sent`: values in the request. */
export function verdictOf(answer: ApiAnswer, sent: number): Verdict {
  if (answer.type === "json") {
    // RFC 9110, 15.3.3: noncommittal, and nobody tells later what became of it.
    if (answer.status === NOT_YET)
      return { type: "lost", reason: new ReasonError("UNKNOWN", NOT_YET_WORDS, { condition: "server_refuses" }) };
    const taken = takenSchema.safeParse(answer.value);
    if (!taken.success) return { type: "lost", reason: foreign("POST /ext/v1/values answered JSON of another shape than the API's") };
    // What was taken before was counted then.
    const missing = taken.data.duplicate ? 0 : Math.min(sent, Math.max(0, sent - taken.data.accepted));
    return {
      type: "taken",
      refused: missing,
      ...(missing > 0 && { detail: `the API took ${sent - missing} of ${sent} values and did not say why not all` }),
    };
  }
  if (answer.type !== "failed") return { type: "lost", reason: foreign("POST /ext/v1/values answered without a body") };
  const { kind, status, message } = answer;
  if (kind === "http_status") {
    // It has them already (RFC 9110, 15.5.10): the batch was sent before.
    if (status === 409) return { type: "taken", refused: 0 };
    if (status === 413) return { type: "too_large", detail: message };
    if (status === 422) return { type: "refused", places: placesOf(answer, sent), detail: message };
    if (status === 403)
      return { type: "lost", reason: new ReasonError("UNKNOWN", `${message}; give the key of api.key_file the right to send values`) };
    if (NOT_OFFERED.has(status ?? 0)) return { type: "lost", reason: notOffered(message) };
  }
  return { type: "lost", reason: reasonOf(answer) };
}

/** The optional fields that the API takes, from its answer to `GET /ext/v1`. Pure. */
export function optionalFieldsIn(answer: ApiAnswer): ReadonlySet<string> {
  const info = answer.type === "json" ? extensionInfoSchema.safeParse(answer.value) : undefined;
  return new Set(info?.data?.optional_fields);
}

/**
 * Why the API cannot be sent values, from its answer to `GET /ext/v1`; undefined: it takes them. `isKeyTaken`: the same key reads a list of
 * it, so that a 401 is about the path. Pure.
 */
export function openingProblem(answer: ApiAnswer, isKeyTaken = false): ReasonError | undefined {
  if (answer.type === "json")
    return extensionInfoSchema.safeParse(answer.value).success
      ? undefined
      : notOffered("GET /ext/v1 answered, but not as the collector's extension does");
  if (answer.type !== "failed") return notOffered("GET /ext/v1 answered without a body");
  const { kind, status = 0, message } = answer;
  const isAbsent = (kind === "http_status" && isProbeRefused(status)) || kind === "redirect" || (status === 401 && isKeyTaken);
  return isAbsent ? notOffered(message) : reasonOf(answer);
}

/** A failure of the requester in the words of the collector: the reason where the network has one, the condition else. Pure. */
export function reasonOf({ kind, message, cause, retryAfterMs }: ApiFailure): ReasonError {
  switch (kind) {
    case "timeout":
      return new ReasonError("TIMEOUT", message);
    case "aborted":
      return new ReasonError("CONNECTION_CLOSED", message);
    case "unreachable":
      return ofNetwork(message, cause);
    case "tls":
      return new ReasonError("UNKNOWN", message, { cause, condition: "certificate_refused" });
    case "key_unusable":
      return new ReasonError("UNKNOWN", message, { condition: "secret_missing" });
    case "insecure":
    case "route_unusable":
      return new ReasonError("UNKNOWN", message, { condition: "configuration_invalid" });
    case "unauthorized":
    case "http_status":
      return new ReasonError("UNKNOWN", message, { retryAfterMs, condition: "server_refuses" });
    default:
      return foreign(message);
  }
}

function ofNetwork(message: string, cause: unknown): ReasonError {
  const code = errorCode(cause);
  if (code.startsWith("HPE_")) return foreign(message);
  const { reason, condition } = toReasonError(cause);
  if (condition !== "internal_error") return new ReasonError(reason, message, { cause, ...(condition && { condition }) });
  // Node's own word for a connection that ended before an answer; it has the code of a reset and no errno.
  if (code === "ECONNRESET") return new ReasonError("CONNECTION_CLOSED", message, { cause });
  // A unix socket that is not there.
  if (code === "ENOENT") return new ReasonError("CONNECTION_REFUSED", message, { cause });
  return new ReasonError("UNKNOWN", message, { cause });
}

const foreign = (message: string): ReasonError => new ReasonError("UNKNOWN", message, { condition: "protocol_violation" });

const notOffered = (message: string): ReasonError =>
  new ReasonError(
    "UNKNOWN",
    `the API does not offer to take values (${message}): publish to a data sink of the type mqtt or opcua instead, or use an API with the collector's extension; asked again less and less often, at least once an hour`,
    { isLasting: true },
  );

/** The values that a validation error names (API-V2, 7: `loc` is `["body", "values", 17, …]`); none where it is about something else too. */
function placesOf({ refusedAt = [] }: ApiFailure, sent: number): ReadonlySet<number> {
  const places = new Set<number>();
  for (const [part, field, place] of refusedAt) {
    if (part !== "body" || field !== "values" || typeof place !== "number" || !(place >= 0 && place < sent)) return new Set();
    places.add(place);
  }
  return places;
}
