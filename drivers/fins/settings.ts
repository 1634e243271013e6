import * as z from "zod";
import { AUTO, encodingSetting } from "../lib/encoding.ts";
import { MAX_ITEMS, MAX_WORDS } from "./frames.ts";

/** The local options of a FINS source. */
export const settingsSchema = z.strictObject({
  transport: z
    .enum(["auto", "tcp", "udp"])
    .default("auto")
    .describe("FINS/TCP, FINS/UDP, or auto: TCP, then UDP; what works is kept until it has not answered for ten minutes"),
  local_port: z
    .int()
    .min(0)
    .max(65_535)
    .default(0)
    .describe(
      "UDP port of this machine, which several sources may share; 0: any. Some controllers answer to port 9600 whatever port they were asked from",
    ),
  retransmissions: z.int().min(0).max(9).default(2).describe("So many times more a request over UDP is sent within its answer time-out"),
  plc_series: z
    .enum(["auto", "c", "cv"])
    .default("auto")
    .describe("With target_plc Classic: c (C200H to C2000H), cv (CV500 to CVM1), or auto: by the model that the controller says"),
  encoding: encodingSetting(AUTO),
  in_flight: z
    .int()
    .min(1)
    .max(8)
    .optional()
    .describe(
      "Requests under way at once, one for Classic controllers; absent: 2, and up to 8 once the controller was seen to answer them as it does one after the other",
    ),
  max_words: z.int().min(1).max(MAX_WORDS).default(MAX_WORDS).describe("Words that one read of a range asks for at most"),
  max_items: z
    .int()
    .min(0)
    .max(MAX_ITEMS)
    .default(MAX_ITEMS)
    .describe("Single words that one multiple read asks for at most; 0: ranges alone are read"),
  max_gap: z
    .int()
    .min(0)
    .max(MAX_WORDS - 1)
    .default(MAX_WORDS - 1)
    .describe("Unused words that one range may bridge, where that saves requests"),
});

export type FinsSettings = z.infer<typeof settingsSchema>;
