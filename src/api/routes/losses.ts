import * as z from "zod";
import { CLOCK_STATES } from "../../model/clock.ts";
import { LOSS_REASONS } from "../../model/loss.ts";
import { pageOf } from "../../model/resources.ts";
import { uuidSchema } from "../../model/uuid.ts";
import { COMMON_ERRORS, problemSchema, route } from "./route.ts";

const instant = z.iso.datetime({ offset: true });

export const lossSchema = z.strictObject({
  id: z.string().min(1).max(200).describe("Identifier of the loss: of two under one, the later one holds"),
  from: instant.describe("Time of the first readout in it"),
  to: instant.describe("Time of the last readout in it"),
  count: z.int().min(0).nullable().describe("Values that the platform will never get; null where the number is unknown"),
  reason: z.enum(LOSS_REASONS).describe("Why"),
  clock: z.exactOptional(z.enum(CLOCK_STATES)).describe("How far both times can be relied on, as that of a value"),
});
export type ReportedLoss = z.output<typeof lossSchema>;

const lossTakenSchema = z.strictObject({ id: z.string().describe("Identifier of the loss that was taken") });

/** What a collector has lost of the values for the platform (extension of ours). */
export const lossRoutes = {
  putLoss: route({
    method: "PUT",
    path: "/ext/v1/losses",
    section: "ours",
    summary: "Reports values that the platform will never get, with the key of the collector that has lost them",
    body: lossSchema,
    responses: { 200: lossTakenSchema, 403: problemSchema, ...COMMON_ERRORS },
  }),
  listLosses: route({
    method: "GET",
    path: "/ext/v1/losses",
    section: "ours",
    summary: "Lists what a collector has lost, the newest 1000 reports by time",
    query: z.strictObject({ collector: uuidSchema.describe("The collector") }),
    responses: { 200: pageOf(lossSchema), 404: problemSchema, ...COMMON_ERRORS },
  }),
} as const;
