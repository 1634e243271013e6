import * as z from "zod";
import { pageOf, siteCreateSchema, sitePatchSchema, siteSchema } from "../../model/resources.ts";
import { byUuid, COMMON_ERRORS, cursorParameter, problemSchema, route } from "./route.ts";

/** API-V2, 4.3; success codes as DESIGN 6 decides. */
export const siteRoutes = {
  listSites: route({
    method: "GET",
    path: "/v2/sites",
    section: "4.3",
    summary: "Lists sites in creation order",
    query: z.strictObject({ cursor: cursorParameter }),
    responses: { 200: pageOf(siteSchema), ...COMMON_ERRORS },
  }),
  createSite: route({
    method: "POST",
    path: "/v2/sites",
    section: "4.3",
    summary: "Creates a site",
    body: siteCreateSchema,
    responses: { 201: siteSchema, 403: problemSchema, ...COMMON_ERRORS },
  }),
  getSite: route({
    method: "GET",
    path: "/v2/sites/{uuid}",
    section: "4.3",
    summary: "Gets a site",
    params: byUuid,
    responses: { 200: siteSchema, 404: problemSchema, ...COMMON_ERRORS },
  }),
  patchSite: route({
    method: "PATCH",
    path: "/v2/sites/{uuid}",
    section: "4.3",
    conditional: true,
    summary: "Changes the name of a site",
    params: byUuid,
    body: sitePatchSchema,
    responses: { 204: null, 403: problemSchema, 404: problemSchema, 412: problemSchema, ...COMMON_ERRORS },
  }),
  deleteSite: route({
    method: "DELETE",
    path: "/v2/sites/{uuid}",
    section: "4.3",
    conditional: true,
    summary: "Deletes a site at which there is neither a collector nor a machine",
    params: byUuid,
    responses: { 204: null, 403: problemSchema, 404: problemSchema, 409: problemSchema, 412: problemSchema, ...COMMON_ERRORS },
  }),
} as const;
