import type { Fault } from "../../src/model/fault.ts";

/** Quality of OPC DA (Data Access Custom Interface 3.00, 6.8): two bits of quality, four of sub status, two of limits; the upper byte is the vendor's. */
export const GOOD = 0xc0;
const MAJOR = 0xc0;
const STATUS = 0xfc;
const UNCERTAIN = 0x40;
const LIMITS = 0x03;
/** Somebody has put another value in the place of the device's. */
const LOCAL_OVERRIDE = 0xd8;

const WORDS: Readonly<Record<number, string>> = {
  0: "bad",
  4: "bad, configuration error",
  8: "bad, not connected",
  12: "bad, device failure",
  16: "bad, sensor failure",
  20: "bad, last known value",
  24: "bad, communication failure",
  28: "bad, out of service",
  32: "bad, waiting for initial data",
  64: "uncertain",
  68: "uncertain, last usable value",
  80: "uncertain, sensor not accurate",
  84: "uncertain, engineering units exceeded",
  88: "uncertain, sub-normal",
  192: "good",
  216: "good, local override",
};

const FAULTS: Readonly<Record<number, Fault>> = {
  4: "not_found",
  8: "no_answer",
  20: "stale",
  24: "no_answer",
  32: "stale",
};

const LIMIT_WORDS = ["", ", limited low", ", limited high", ", constant"] as const;
const FAMILIES: Readonly<Record<number, string>> = { 0: "bad", 64: "uncertain", 128: "no quality of OPC DA", 192: "good" };

/** Good, uncertain, or the fault that a bad quality is. Pure. */
export function meaningOf(quality: number): "good" | "uncertain" | Fault {
  const major = quality & MAJOR;
  if (major === GOOD) return "good";
  if (major === UNCERTAIN) return "uncertain";
  return FAULTS[quality & STATUS] ?? "device_error";
}

/** True: people should know of it although there is a value. */
export const isDoubtful = (quality: number): boolean => (quality & MAJOR) !== GOOD || (quality & STATUS) === LOCAL_OVERRIDE;

/** `OPC quality 0x0015 (bad, last known value, limited low)`. */
export function qualityWords(quality: number): string {
  const words = WORDS[quality & STATUS] ?? FAMILIES[quality & MAJOR] ?? "";
  const code = `0x${quality.toString(16).toUpperCase().padStart(4, "0")}`;
  return `OPC quality ${code} (${words}${LIMIT_WORDS[quality & LIMITS] ?? ""})`;
}
