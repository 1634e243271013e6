import * as z from "zod";
import { encodingSetting, WESTERN } from "../lib/encoding.ts";
import { parseRoute } from "./manager.ts";

/** The local options of an EtherNet/IP source. */
export const settingsSchema = z.strictObject({
  path: z
    .string()
    .refine((text) => text === "auto" || text === "direct" || (text !== "" && typeof parseRoute(text) !== "string"), {
      error: "expected auto, direct, or ports and slots or addresses, for example 1,0 (backplane, slot 0) or 1,2,2,10.1.2.3,1,0",
    })
    .default("auto")
    .describe(
      "Way to the controller: auto (looks for it in the backplane), direct (no route), or port and slot, for example 1,0 for slot 0",
    ),
  connection_size: z
    .int()
    .min(100)
    .max(4002)
    .default(4002)
    .describe("Bytes of one message over the connection that the collector asks for; it takes fewer where the controller grants fewer"),
  encoding: encodingSetting(WESTERN),
  connected: z.boolean().default(true).describe("Opens a connection in the controller, which is faster; false: unconnected messages"),
  in_flight: z.int().min(1).max(8).default(1).describe("Requests under way at once; Logix answers several in order, older modules take 1"),
});

export type CipSettings = z.infer<typeof settingsSchema>;
