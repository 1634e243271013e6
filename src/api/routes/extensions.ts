import * as z from "zod";
import { pageOf, readoutStatusReportSchema } from "../../model/resources.ts";
import { uuidSchema } from "../../model/uuid.ts";
import { variableCreateSchema, variableSchema } from "../../model/variable.ts";
import { byUuid, COMMON_ERRORS, cursorParameter, problemSchema, route, uuidFilter } from "./route.ts";

/** What `GET /ext/v1` says where our extensions are offered; anything else is another service's page. */
export const extensionInfoSchema = z.object({
  extension: z.literal("collector").describe("Whose extension this is"),
  version: z.literal(1).describe("Version of the extension"),
});

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

/** Extensions of ours, apart from the platform's own names (DESIGN, 6). */
export const extensionRoutes = {
  getExtensions: route({
    method: "GET",
    path: "/ext/v1",
    section: "ours",
    summary: "Says that the extensions are offered, and in which version",
    responses: { 200: extensionInfoSchema, ...COMMON_ERRORS },
  }),
  listVariables: route({
    method: "GET",
    path: "/ext/v1/variables",
    section: "ours",
    summary: "Lists variables in creation order",
    query: z.strictObject({ cursor: cursorParameter, data_source: uuidFilter("data sources"), collector: uuidFilter("collectors") }),
    responses: { 200: pageOf(variableSchema), ...COMMON_ERRORS },
  }),
  createVariable: route({
    method: "POST",
    path: "/ext/v1/variables",
    section: "ours",
    summary: "Creates a variable of a data source",
    body: variableCreateSchema,
    responses: { 201: variableSchema, 409: problemSchema, ...COMMON_ERRORS },
  }),
  patchVariable: route({
    method: "PATCH",
    path: "/ext/v1/variables/{uuid}",
    conditional: true,
    section: "ours",
    summary: "Changes the fields of a variable that are present",
    params: byUuid,
    body: variablePatchSchema,
    responses: { 204: null, 404: problemSchema, 409: problemSchema, 412: problemSchema, ...COMMON_ERRORS },
  }),
  deleteVariable: route({
    method: "DELETE",
    path: "/ext/v1/variables/{uuid}",
    conditional: true,
    section: "ours",
    summary: "Deletes a variable",
    params: byUuid,
    responses: { 204: null, 404: problemSchema, 412: problemSchema, ...COMMON_ERRORS },
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
