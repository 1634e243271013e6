import * as z from "zod";
import { boundedArray } from "../../model/bounded.ts";
import { CLOCK_STATES } from "../../model/clock.ts";
import { pageOf } from "../../model/resources.ts";
import { uuidSchema } from "../../model/uuid.ts";
import { MAX_COUNT } from "../../model/value.ts";
import { COMMON_ERRORS, cursorParameter, problemSchema, route, uuidFilter } from "./route.ts";

/** Variables of one time series request (design/api-decisions). */
const MAX_VARIABLES = 100;
/** Values of one batch. */
const MAX_VALUES = 50_000;
const MAX_VALUES_BYTES = 8 * 2 ** 20;

export const QUALITIES = ["good", "uncertain", "bad"] as const;
export type Quality = (typeof QUALITIES)[number];

const instant = z.iso.datetime({ offset: true });
/** An integer beyond 2^53 arrives as a bigint, with all its digits. */
const scalar = z.union([z.boolean(), z.number(), z.bigint(), z.string()]);
const value = z.union([scalar, boundedArray(scalar.nullable(), MAX_COUNT)]).nullable();

/** One value of one variable. */
export const sampleSchema = z.strictObject({
  time: instant.describe("When it was read"),
  variable: uuidSchema.describe("The variable"),
  value: value.describe("The value; null where it is bad, and null for an element of an array that has none"),
  quality: z.enum(QUALITIES).describe("How far the value can be relied on"),
  clock: z
    .exactOptional(z.enum(CLOCK_STATES))
    .describe(
      "How far the time can be relied on: synchronised; corrected, because the collector's clock was wrong and was set; or unsynchronised, because nothing confirms that it was right. Absent: synchronised, or nothing is known",
    ),
});

export const valuesSchema = z.strictObject({
  id: z.string().min(1).max(200).describe("Identifier of the batch: one that was taken before is not taken again with the same content"),
  data_source: uuidSchema.describe("The data source that all of them were read from"),
  values: boundedArray(sampleSchema, MAX_VALUES).describe("The values"),
});
export type ValueBatch = z.output<typeof valuesSchema>;

export const valuesAcceptedSchema = z.strictObject({
  accepted: z.int().describe("Values that were taken"),
  duplicate: z.boolean().describe("Whether the batch had been taken before; then none of it was taken again"),
});

const storedSampleSchema = sampleSchema.extend({ data_source: uuidSchema.describe("The data source that it was read from") });

const samplePageSchema = pageOf(storedSampleSchema);

export const timeseriesRequestSchema = z
  .strictObject({
    machine: z.exactOptional(uuidSchema).describe("Only variables of data sources on this machine"),
    variables: z
      .exactOptional(
        boundedArray(uuidSchema, MAX_VARIABLES)
          .min(1)
          .refine((values) => new Set(values).size === values.length, "the values are not unique: give each of them once")
          .meta({ uniqueItems: true }),
      )
      .describe(`Only these variables; at most ${MAX_VARIABLES}, each once`),
    start: instant.describe("From this time on"),
    end: instant.describe("Before this time"),
    cursor: z.exactOptional(z.string().min(1)).describe("next_cursor of the previous page; the other fields stay unchanged"),
  })
  .refine(({ machine, variables }) => machine !== undefined || variables !== undefined, {
    path: ["variables"],
    error: "expected variables, or a machine, or both",
  });
export type TimeseriesRequest = z.output<typeof timeseriesRequestSchema>;

/** Values as they are taken (extension of ours) and read back (API-V2, 4.4 and 4.5.7; fields as design/api-decisions decides). */
export const valueRoutes = {
  postValues: route({
    method: "POST",
    path: "/ext/v1/values",
    section: "ours",
    summary: "Takes a batch of values, once for each identifier and content",
    body: valuesSchema,
    bodyBytes: MAX_VALUES_BYTES,
    exactIntegers: true,
    responses: { 200: valuesAcceptedSchema, 403: problemSchema, ...COMMON_ERRORS },
  }),
  listValues: route({
    method: "GET",
    path: "/ext/v1/values",
    section: "ours",
    summary: "Lists the values that were taken, variable by variable, each in the order of time",
    query: z.strictObject({
      cursor: cursorParameter,
      data_source: uuidFilter("data sources"),
      start: instant.describe("From this time on"),
      end: instant.describe("Before this time"),
    }),
    responses: { 200: samplePageSchema, ...COMMON_ERRORS },
  }),
  postTimeseries: route({
    method: "POST",
    path: "/v2/timeseries",
    section: "4.5",
    summary: "Reads values back, variable by variable, each in the order of time; the cursor is in the body",
    body: timeseriesRequestSchema,
    responses: { 200: samplePageSchema, ...COMMON_ERRORS },
  }),
} as const;
