import { dataSourceCreateSchema, dataSourcePatchSchema, dataSourceResponseSchema } from "../../model/resources.ts";
import { recordRoutes } from "./record-routes.ts";
import { uuidFilter } from "./route.ts";

/** API-V2, 4.1; get, change and delete as design/api-decisions decides. */
const routes = recordRoutes({
  path: "/v2/data-sources",
  section: "4.1",
  record: dataSourceResponseSchema,
  create: dataSourceCreateSchema,
  patch: dataSourcePatchSchema,
  filters: { uuid: uuidFilter("identifiers"), machine: uuidFilter("machines"), collector: uuidFilter("collectors") },
  summaries: {
    list: "Lists data sources in creation order",
    create: "Creates a data source",
    get: "Gets a data source",
    patch: "Changes the fields of a data source that are present",
    delete: "Deletes a data source with its variables",
  },
  problems: { create: [], patch: [], delete: [] },
});

export const dataSourceRoutes = {
  listDataSources: routes.list,
  createDataSource: routes.create,
  getDataSource: routes.get,
  patchDataSource: routes.patch,
  deleteDataSource: routes.delete,
};
