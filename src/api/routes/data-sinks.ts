import { dataSinkCreateSchema, dataSinkPatchSchema, dataSinkResponseSchema } from "../../model/resources.ts";
import { recordRoutes } from "./record-routes.ts";
import { uuidFilter } from "./route.ts";

/** API-V2, 4.2. */
const routes = recordRoutes({
  path: "/v2/data-sinks",
  section: "4.2",
  experimental: true,
  record: dataSinkResponseSchema,
  create: dataSinkCreateSchema,
  patch: dataSinkPatchSchema,
  filters: { uuid: uuidFilter("identifiers"), collector: uuidFilter("collectors") },
  summaries: {
    list: "Lists data sinks in creation order",
    create: "Creates a data sink on the collector",
    get: "Gets a data sink",
    patch: "Changes the fields of a data sink that are present",
    delete: "Deletes a data sink; the collector stops publishing to it",
  },
  problems: { create: [409], patch: [409], delete: [] },
});

export const dataSinkRoutes = {
  listDataSinks: routes.list,
  createDataSink: routes.create,
  getDataSink: routes.get,
  patchDataSink: routes.patch,
  deleteDataSink: routes.delete,
};
