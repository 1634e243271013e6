import * as z from "zod";
import { encodingSetting, WESTERN } from "../lib/encoding.ts";

const tsap = z
  .string()
  .regex(/^[0-9a-f]{2}[.:]?[0-9a-f]{2}$/i, "expected two bytes in hexadecimal, for example 02.00")
  .default("02.00");

/** The local options of an S7 source. */
export const settingsSchema = z.strictObject({
  connection_type: z
    .enum(["op", "basic", "pg", "logo", "s7_200", "raw"])
    .default("op")
    .describe(
      "Which of the controller's connections is used: op (panels), basic (S7), pg (programming devices), logo (LOGO!, TSAPs 02.00), s7_200 (S7-200 with a CP 243-1, TSAPs 4D.57), raw (TSAPs as below)",
    ),
  local_tsap: tsap.describe("TSAP of the collector with connection_type raw, as LOGO!Soft shows it"),
  remote_tsap: tsap.describe("TSAP of the controller with connection_type raw"),
  encoding: encodingSetting(WESTERN),
  pdu_size: z
    .int()
    .min(112)
    .max(960)
    .default(960)
    .describe("Bytes of one message that the collector asks for; the controller grants as many or fewer"),
  in_flight: z.int().min(1).max(8).default(8).describe("Jobs under way at once; the controller grants as many or fewer"),
  max_items: z.int().min(1).max(20).default(20).describe("Ranges in one job; some controllers take fewer than 20"),
  max_gap: z.int().min(0).max(200).default(64).describe("Unused bytes that one range may bridge, where that saves jobs"),
});

export type S7Settings = z.infer<typeof settingsSchema>;
