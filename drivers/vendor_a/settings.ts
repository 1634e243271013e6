import * as z from "zod";
import { encodingSetting, WESTERN } from "../lib/encoding.ts";
import { parsePath } from "./path.ts";

/** Data bytes of one answer, at most. 1770-6.5.16. */
export const MOST_FILE_BYTES = 240;

/** The local options of an EtherNet/IP source. */
export const settingsSchema = z.strictObject({
  path: z
    .string()
    .refine((text) => text === "auto" || text === "direct" || (text !== "" && typeof parsePath(text) !== "string"), {
      error: ({ input }) =>
        `expected auto, direct, or ports and slots or addresses, for example 1,0 (backplane, slot 0), 1,2,2,10.1.2.3,1,0 or 1,3,A:12 (channel A of the DH+ module in slot 3, node 12)${whyNot(String(input))}`,
    })
    .default("auto")
    .describe(
      "Way to the controller: auto (looks for it in the backplane), direct (no route), or port and slot, for example 1,0 for slot 0; 1,3,A:12 is node 12 (octal) of DH+ on channel A of the module in slot 3",
    ),
  family: z
    .enum(["auto", "slc", "micrologix", "plc5"])
    .default("auto")
    .describe(
      "Controllers with data files: slc (SLC 500), micrologix, plc5, or auto: by the identity of the device, behind a bridge by what the controller says",
    ),
  max_file_bytes: z
    .int()
    .min(2)
    .max(MOST_FILE_BYTES)
    .default(MOST_FILE_BYTES)
    .describe("Data bytes that one answer from a data file may have; the family has fewer, from 82 on"),
  connection_size: z
    .int()
    .min(100)
    .max(4002)
    .default(4002)
    .describe(
      "Bytes of one message over the connection that the collector asks for; it takes fewer where the controller grants fewer, at most 1994 in NJ and NX controllers and 504 in Micro800",
    ),
  encoding: encodingSetting(WESTERN).describe(
    "Encoding of texts: auto (UTF-8 where they are valid UTF-8, else windows-1252), or a label of the WHATWG Encoding Standard, such as gbk or shift_jis; in NJ and NX controllers the default means auto",
  ),
  connected: z.boolean().default(true).describe("Opens a connection in the controller, which is faster; false: unconnected messages"),
  in_flight: z
    .int()
    .min(1)
    .max(8)
    .optional()
    .describe(
      "Requests under way at once; absent: 1, and up to 8 once the controller was seen to answer them as it does one after the other",
    ),
});

function whyNot(text: string): string {
  const parsed = parsePath(text);
  return typeof parsed === "string" ? `: ${parsed}` : "";
}

export type CipSettings = z.infer<typeof settingsSchema>;
