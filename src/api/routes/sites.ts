import { siteCreateSchema, sitePatchSchema, siteSchema } from "../../model/resources.ts";
import { recordRoutes } from "./record-routes.ts";

/** API-V2, 4.3; success codes as design/api-decisions decides. */
const routes = recordRoutes({
  path: "/v2/sites",
  section: "4.3",
  record: siteSchema,
  create: siteCreateSchema,
  patch: sitePatchSchema,
  filters: {},
  summaries: {
    list: "Lists sites in creation order",
    create: "Creates a site",
    get: "Gets a site",
    patch: "Changes the name of a site",
    delete: "Deletes a site at which there is neither a collector nor a machine",
  },
  problems: { create: [403], patch: [403], delete: [403, 409] },
});

export const siteRoutes = {
  listSites: routes.list,
  createSite: routes.create,
  getSite: routes.get,
  patchSite: routes.patch,
  deleteSite: routes.delete,
};
