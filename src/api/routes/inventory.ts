import { inventoryCreateSchema, inventoryPatchSchema, inventoryRecordSchema } from "../../model/resources.ts";
import { recordRoutes } from "./record-routes.ts";
import { uuidFilter } from "./route.ts";

const ofKind = (path: `/${string}`, name: string, whatDeleteTakes: string) =>
  recordRoutes({
    path,
    section: "ours",
    // A schema of its own for each kind, because clients name their types after them.
    record: inventoryRecordSchema.describe(`A ${name}`),
    create: inventoryCreateSchema.describe(`A ${name}; one that has an identifier elsewhere brings it along`),
    patch: inventoryPatchSchema.describe("Only the fields that are present change"),
    filters: { uuid: uuidFilter("identifiers"), site: uuidFilter("sites") },
    summaries: {
      list: `Lists ${name}s in creation order`,
      create: `Creates a ${name}`,
      get: `Gets a ${name}`,
      patch: `Changes the fields of a ${name} that are present`,
      delete: `Deletes a ${name} ${whatDeleteTakes}`,
    },
    problems: { create: [403, 409], patch: [403], delete: [403, 409] },
  });
const collectors = ofKind("/ext/v1/collectors", "collector", "that has neither data sources nor data sinks, with its keys");
const machines = ofKind("/ext/v1/machines", "machine", "on which there is no data source");

/** Collectors and machines: the document refers to them and shows no operation of theirs, so these are extensions of ours (design/api-decisions). */
export const inventoryRoutes = {
  listCollectors: collectors.list,
  createCollector: collectors.create,
  getCollector: collectors.get,
  patchCollector: collectors.patch,
  deleteCollector: collectors.delete,
  listMachines: machines.list,
  createMachine: machines.create,
  getMachine: machines.get,
  patchMachine: machines.patch,
  deleteMachine: machines.delete,
};
