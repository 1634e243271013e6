import * as z from "zod";
import { encodingSetting, WESTERN } from "../lib/encoding.ts";

/** The local options of an S7plus source. */
export const settingsSchema = z.strictObject({
  user: z
    .string()
    .max(128)
    .default("")
    .describe("User whose password the data source has, for CPUs with user management; empty: the password of an access level"),
  certificate: z
    .string()
    .regex(/^$|^[0-9a-f]{2}(:?[0-9a-f]{2}){31}$/i, "expected a SHA-256 fingerprint, 64 digits in hexadecimal")
    .default("")
    .describe("SHA-256 fingerprint of the only certificate that is accepted from the CPU; empty: any, since most are self-signed"),
  encoding: encodingSetting(WESTERN),
  max_items: z
    .int()
    .min(1)
    .max(1000)
    .default(1000)
    .describe("Variables in one request; the CPU says how many it takes, and a request holds about 70"),
  program_check: z
    .int()
    .min(0)
    .max(3600)
    .default(30)
    .describe(
      "Seconds between two looks at the list of all blocks and at the types of tags and structures, where symbols are read; the blocks that they are in are looked at behind each readout. 0: neither, another program is noticed when a variable fails",
    ),
  check_symbols: z
    .boolean()
    .default(false)
    .describe("Let the CPU check with each read that a variable still has its name and type, where it knows how (not for elements)"),
});

export type S7plusSettings = z.infer<typeof settingsSchema>;
