import * as z from "zod";
import { dataSinkCreateSchema, dataSinkPatchSchema, dataSinkResponseSchema, pageOf } from "../../model/resources.ts";
import { byUuid, COMMON_ERRORS, cursorParameter, problemSchema, route, uuidFilter } from "./route.ts";

/** API-V2, 4.2. */
export const dataSinkRoutes = {
  listDataSinks: route({
    method: "GET",
    path: "/v2/data-sinks",
    section: "4.2",
    experimental: true,
    summary: "Lists data sinks in creation order",
    query: z.strictObject({ cursor: cursorParameter, uuid: uuidFilter("identifiers"), collector: uuidFilter("collectors") }),
    responses: { 200: pageOf(dataSinkResponseSchema), ...COMMON_ERRORS },
  }),
  createDataSink: route({
    method: "POST",
    path: "/v2/data-sinks",
    section: "4.2",
    experimental: true,
    summary: "Creates a data sink on the collector",
    body: dataSinkCreateSchema,
    responses: { 201: dataSinkResponseSchema, 409: problemSchema, ...COMMON_ERRORS },
  }),
  getDataSink: route({
    method: "GET",
    path: "/v2/data-sinks/{uuid}",
    section: "4.2",
    experimental: true,
    summary: "Gets a data sink",
    params: byUuid,
    responses: { 200: dataSinkResponseSchema, 404: problemSchema, ...COMMON_ERRORS },
  }),
  patchDataSink: route({
    method: "PATCH",
    path: "/v2/data-sinks/{uuid}",
    conditional: true,
    section: "4.2",
    experimental: true,
    summary: "Changes the fields of a data sink that are present",
    params: byUuid,
    body: dataSinkPatchSchema,
    responses: { 204: null, 404: problemSchema, 409: problemSchema, 412: problemSchema, ...COMMON_ERRORS },
  }),
  deleteDataSink: route({
    method: "DELETE",
    path: "/v2/data-sinks/{uuid}",
    conditional: true,
    section: "4.2",
    experimental: true,
    summary: "Deletes a data sink; the collector stops publishing to it",
    params: byUuid,
    responses: { 204: null, 404: problemSchema, 412: problemSchema, ...COMMON_ERRORS },
  }),
} as const;
