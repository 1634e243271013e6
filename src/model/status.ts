import * as z from "zod";
import { reasonSchema } from "./reason-schema.ts";

const instant = z.iso.datetime({ offset: true });

/** API-V2, 2.3. */
export const readoutStateSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("OK") }),
  z.strictObject({
    type: z.literal("ERROR"),
    reason: reasonSchema.describe("Why it failed"),
    error_at: instant.describe("Time the error occurred"),
  }),
  z.strictObject({ type: z.literal("UNKNOWN") }),
]);

/** API-V2, 2.3. */
export const readoutStatusSchema = z.strictObject({
  last_readout_at: instant.nullable().describe("Time of the last successful readout; null if none has succeeded yet"),
  configured_variables: z.int().describe("Number of active or evaluated variables"),
  state: readoutStateSchema.describe("State of the data source"),
});

export type ReadoutState = z.infer<typeof readoutStateSchema>;
export type ReadoutStatus = z.infer<typeof readoutStatusSchema>;
