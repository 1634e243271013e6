import { type Warning, warning } from "../../model/warning.ts";
import type { PublishRate } from "../lib/publish-rate.ts";
import { twoDigits } from "./link-report.ts";

/** Says that the broker accepts fewer publishes than come; empty where it does not, or the settings limit them. */
export function rateWarnings(rate: PublishRate): readonly Warning[] {
  const { perS = 0, isLearned = false } = rate.state() ?? {};
  if (!isLearned) return [];
  return [
    warning(
      "broker_limits_publishes",
      `the broker accepts about ${twoDigits(perS)} publishes a second from this client: further ones wait and arrive later`,
    ),
  ];
}
