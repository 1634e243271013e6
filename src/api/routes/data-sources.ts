import * as z from "zod";
import { dataSourceCreateSchema, dataSourcePatchSchema, dataSourceResponseSchema, pageOf } from "../../model/resources.ts";
import { byUuid, COMMON_ERRORS, cursorParameter, problemSchema, route, uuidFilter } from "./route.ts";

/** API-V2, 4.1; get, change and delete as DESIGN 6 decides. */
export const dataSourceRoutes = {
  listDataSources: route({
    method: "GET",
    path: "/v2/data-sources",
    section: "4.1",
    summary: "Lists data sources in creation order",
    query: z.strictObject({
      cursor: cursorParameter,
      uuid: uuidFilter("identifiers"),
      machine: uuidFilter("machines"),
      collector: uuidFilter("collectors"),
    }),
    responses: { 200: pageOf(dataSourceResponseSchema), ...COMMON_ERRORS },
  }),
  createDataSource: route({
    method: "POST",
    path: "/v2/data-sources",
    section: "4.1",
    summary: "Creates a data source",
    body: dataSourceCreateSchema,
    responses: { 201: dataSourceResponseSchema, ...COMMON_ERRORS },
  }),
  getDataSource: route({
    method: "GET",
    path: "/v2/data-sources/{uuid}",
    section: "4.1",
    summary: "Gets a data source",
    params: byUuid,
    responses: { 200: dataSourceResponseSchema, 404: problemSchema, ...COMMON_ERRORS },
  }),
  patchDataSource: route({
    method: "PATCH",
    path: "/v2/data-sources/{uuid}",
    conditional: true,
    section: "4.1",
    summary: "Changes the fields of a data source that are present",
    params: byUuid,
    body: dataSourcePatchSchema,
    responses: { 204: null, 404: problemSchema, 412: problemSchema, ...COMMON_ERRORS },
  }),
  deleteDataSource: route({
    method: "DELETE",
    path: "/v2/data-sources/{uuid}",
    conditional: true,
    section: "4.1",
    summary: "Deletes a data source with its variables",
    params: byUuid,
    responses: { 204: null, 404: problemSchema, 412: problemSchema, ...COMMON_ERRORS },
  }),
} as const;
