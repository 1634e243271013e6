import { ReasonError } from "../../model/reason.ts";
import { defaultPublishInterval } from "../../model/sink-details.ts";

/** `publish_interval` of the API in ms; absent: one second. Throws ReasonError(UNKNOWN, interval_invalid) that names the field. */
export function publishIntervalMs(publishInterval: number | undefined, unit: "seconds" | "milliseconds"): number {
  const value = publishInterval ?? defaultPublishInterval(unit);
  if (value <= 0)
    throw new ReasonError("UNKNOWN", `publish_interval is ${value}; it must be a whole number of ${unit} above zero`, {
      condition: "interval_invalid",
    });
  return unit === "seconds" ? value * 1000 : value;
}
