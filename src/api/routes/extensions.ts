import * as z from "zod";
import { boundedArray } from "../../model/bounded.ts";
import { readoutStatusReportSchema } from "../../model/resources.ts";
import { uuidSchema } from "../../model/uuid.ts";
import { variableCreateSchema, variableInputSchema, variableSchema } from "../../model/variable.ts";
import { recordRoutes } from "./record-routes.ts";
import { COMMON_ERRORS, problemSchema, route, uuidFilter } from "./route.ts";

/** What `GET /ext/v1` says where our extensions are offered; anything else is another service's page. */
export const extensionInfoSchema = z.object({
  extension: z.literal("collector").describe("Whose extension this is"),
  version: z.literal(1).describe("Version of the extension"),
  optional_fields: z
    .exactOptional(z.array(z.string()).max(100))
    .describe("Optional fields that are taken, such as `values.clock`; others are not to be sent"),
});

/** Names in `optional_fields`. */
export const CLOCK_OF_VALUES = "values.clock";
export const CLOCK_OF_LOSSES = "losses.clock";
/** Elements of arrays may be null. */
export const NULLS_IN_VALUES = "values.null_elements";

export const revisionSchema = z.object({
  revision: z.string().min(1).describe("Changes with the collector's data sources, variables, data sinks and secrets, never with a status"),
});

/** Secrets by data source or data sink, then by field. */
export const secretsSchema = z.object({ secrets: z.record(uuidSchema, z.record(z.string(), z.string())) });

export const statusesAcceptedSchema = z.strictObject({
  updated: z.int().describe("Data sources whose status was taken over"),
  unknown: z.array(uuidSchema).describe("Data sources that are not (or no longer) there for this key"),
});

const ofCollector = z.strictObject({ collector: uuidSchema.describe("The collector") });

/** A partial creation form in which no default is applied. */
const variablePatchSchema = z
  .strictObject({
    name: z.exactOptional(variableCreateSchema.shape.name),
    address: z.exactOptional(variableCreateSchema.shape.address),
    type: z.exactOptional(variableCreateSchema.shape.type.unwrap()),
    unit: z.exactOptional(variableCreateSchema.shape.unit.unwrap()),
    scaling: z.exactOptional(variableCreateSchema.shape.scaling.unwrap()),
    comment: z.exactOptional(variableCreateSchema.shape.comment.unwrap()),
    status: z.exactOptional(variableCreateSchema.shape.status.unwrap()),
  })
  .describe("Only the fields that are present change");
export type VariablePatch = z.output<typeof variablePatchSchema>;

/** Variables in one batch, of each kind of change. */
export const MAX_BATCH = 500;

/** A change in a batch. */
export const variableChangeSchema = variablePatchSchema.extend({ uuid: uuidSchema.describe("The variable") });

const variablesBatchSchema = z
  .strictObject({
    data_source: uuidSchema.describe("The data source of all of them"),
    delete: boundedArray(uuidSchema, MAX_BATCH).default([]).describe("Variables to delete, first"),
    change: boundedArray(variableChangeSchema, MAX_BATCH)
      .default([])
      .describe("Variables to change, then; only the fields that are present"),
    create: boundedArray(variableInputSchema, MAX_BATCH).default([]).describe("Variables to create, last, in this order"),
  })
  .describe("Many changes of the variables of one data source");
export type VariablesBatch = z.output<typeof variablesBatchSchema>;

const count = (what: string) => z.int().describe(`Variables that were ${what}`);
export const variablesChangedSchema = z.strictObject({ deleted: count("deleted"), changed: count("changed"), created: count("created") });

const variables = recordRoutes({
  path: "/ext/v1/variables",
  section: "ours",
  record: variableSchema,
  create: variableCreateSchema,
  patch: variablePatchSchema,
  filters: { data_source: uuidFilter("data sources"), collector: uuidFilter("collectors") },
  summaries: {
    list: "Lists variables in creation order",
    create: "Creates a variable of a data source",
    // Not offered.
    get: "Gets a variable",
    patch: "Changes the fields of a variable that are present",
    delete: "Deletes a variable",
  },
  problems: { create: [409], patch: [409], delete: [] },
});

/** Extensions of ours, apart from the platform's own names (design/api-decisions). */
export const extensionRoutes = {
  getExtensions: route({
    method: "GET",
    path: "/ext/v1",
    section: "ours",
    summary: "Says that the extensions are offered, and in which version",
    responses: { 200: extensionInfoSchema, ...COMMON_ERRORS },
  }),
  listVariables: variables.list,
  createVariable: variables.create,
  patchVariable: variables.patch,
  deleteVariable: variables.delete,
  changeVariables: route({
    method: "POST",
    path: "/ext/v1/variables/batch",
    section: "ours",
    summary: "Deletes, changes and creates many variables of one data source: all of it, or nothing",
    body: variablesBatchSchema,
    responses: { 200: variablesChangedSchema, 404: problemSchema, 409: problemSchema, ...COMMON_ERRORS },
  }),
  putReadoutStatuses: route({
    method: "PUT",
    path: "/ext/v1/readout-statuses",
    section: "ours",
    summary: "Reports the readout statuses of data sources, many at once",
    body: readoutStatusReportSchema,
    responses: { 200: statusesAcceptedSchema, ...COMMON_ERRORS },
  }),
  getRevision: route({
    method: "GET",
    path: "/ext/v1/revision",
    section: "ours",
    summary: "Says whether a collector's configuration changed; answers 304 to If-None-Match",
    query: ofCollector,
    responses: { 200: revisionSchema, 304: null, 404: problemSchema, ...COMMON_ERRORS },
  }),
  getSecrets: route({
    method: "GET",
    path: "/ext/v1/secrets",
    section: "ours",
    summary: "The write-only secrets of a collector's data sources and data sinks, for that collector's own key alone",
    query: ofCollector,
    responses: { 200: secretsSchema, 403: problemSchema, ...COMMON_ERRORS },
  }),
} as const;
