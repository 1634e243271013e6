import * as z from "zod";
import { parseDuration } from "../../base/duration.ts";

const duration = (fallback: string, longest: string) =>
  z
    .string()
    .refine((text) => {
      const ms = parseDuration(text);
      return ms !== undefined && ms > 0 && ms <= (parseDuration(longest) ?? 0);
    }, `expected a duration such as 10s or 500ms, at most ${longest}`)
    .default(fallback)
    .transform((text) => parseDuration(text) ?? 1);

/** Connections that the requester keeps open to one API. */
const MAX_IN_FLIGHT = 4;

/** Local options of a platform sink, under `sinks.<uuid or name>`. */
export const settingsSchema = z.strictObject({
  connect_timeout: duration("5s", "1min").describe("Deadline of name look-up, TCP connect and TLS together"),
  request_timeout: duration("30s", "10min").describe("Deadline of one request with its answer"),
  in_flight: z.int().min(1).max(MAX_IN_FLIGHT).default(MAX_IN_FLIGHT).describe("Requests under way at once, 1 to 4"),
  manifest: z
    .boolean()
    .default(false)
    .describe(
      "Whether this machine keeps what the platform has acknowledged, time, hash and number of values of each readout, for `collector verify`; at most 16 MiB in the state folder",
    ),
});
export type PlatformSettings = z.infer<typeof settingsSchema>;
