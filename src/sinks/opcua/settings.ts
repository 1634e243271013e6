import * as z from "zod";
import { size } from "../../model/settings.ts";
import { LIMITS } from "./limits.ts";

/** Local options of an OPC UA sink, under `sinks.<uuid or name>`. */
export const settingsSchema = z.strictObject({
  listen: z
    .union([z.ipv4(), z.ipv6()], { error: "expected an IP address of this machine, or 0.0.0.0 for all of them" })
    .optional()
    .describe("IP address to listen on; absent: all of this machine (0.0.0.0) if policy.yaml opens that, else 127.0.0.1"),
  max_sessions: z.int().min(1).max(200).default(LIMITS.sessions).describe("Sessions of all clients at once, 1 to 200"),
  max_monitored_items: z
    .int()
    .min(100)
    .max(500_000)
    .default(LIMITS.monitoredItems)
    .describe("Monitored items of all clients at once, 100 to 500000; each takes up to some 5 KB"),
  max_answer: size("8MiB", "1MiB", "64MiB").describe(
    "Bytes of one answer to a client, 1MiB to 64MiB; a larger value is shown as BadEncodingLimitsExceeded, and a warning names it",
  ),
  max_waiting: size("16MiB", "1MiB", "128MiB").describe(
    "Bytes of the newest readouts that wait in memory to be shown, 1MiB to 128MiB, and one readout more; beyond it a warning names the source",
  ),
});

export type OpcuaSinkSettings = z.infer<typeof settingsSchema>;
