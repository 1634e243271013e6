import * as z from "zod";
import { DETAILS, DETAILS_TYPES, detailsCreateSchema, detailsReadSchema } from "../../model/details.ts";
import { reasonSchema } from "../../model/reason-schema.ts";
import {
  capabilitiesSchema,
  dataSinkCreateSchema,
  dataSinkPatchSchema,
  dataSinkResponseSchema,
  dataSourceCreateSchema,
  dataSourcePatchSchema,
  dataSourceResponseSchema,
  pageMetadataSchema,
  siteCreateSchema,
  sitePatchSchema,
  siteSchema,
  validationErrorSchema,
} from "../../model/resources.ts";
import { sinkDetailsCreateSchema, sinkDetailsReadSchema } from "../../model/sink-details.ts";
import { readoutStateSchema, readoutStatusSchema } from "../../model/status.ts";
import { variableCreateSchema, variableInputSchema, variableSchema } from "../../model/variable.ts";
import { variableChangeSchema } from "./extensions.ts";
import { ROUTES } from "./index.ts";
import { lossSchema } from "./losses.ts";
import { problemSchema } from "./route.ts";
import { sampleSchema, timeseriesRequestSchema, valuesSchema } from "./values.ts";

type Named = readonly (readonly [name: string, schema: z.ZodType])[];

/** `modbus_tcp`, `OPC_UA_ERROR_RESPONSE` and `UserNamePassword` as the names of types are written. */
const pascal = (text: string): string =>
  text
    .split(/[_-]/)
    .map((word) => word.slice(0, 1).toUpperCase() + (/^[A-Z0-9]{2,}$/.test(word) ? word.slice(1).toLowerCase() : word.slice(1)))
    .join("");

const innerOf = (schema: z.ZodType): z.ZodType => (schema instanceof z.ZodOptional ? (schema.unwrap() as z.ZodType) : schema);

/** A union by its discriminator, and each variant of it. */
function union(name: string, schema: z.ZodType, variantName = (tag: string): string => `${name}${tag}`): Named {
  const inner = innerOf(schema);
  if (!(inner instanceof z.ZodDiscriminatedUnion)) throw new Error(`${name} is not a discriminated union`);
  const { discriminator } = inner._zod.def;
  const variants = (inner.options as readonly z.ZodObject[]).map((option): [string, z.ZodType] => {
    const tag: unknown = option.shape[discriminator];
    if (!(tag instanceof z.ZodLiteral)) throw new Error(`a variant of ${name} has no constant ${discriminator}`);
    return [variantName(pascal(String(tag.value))), option];
  });
  return [[name, inner], ...variants];
}

/** Objects and unions inside the details of each type, in the form in which they are read or in that in which they are created. */
const insideDetails = (form: "read" | "create", suffix: string): Named =>
  DETAILS_TYPES.flatMap((type) =>
    Object.entries<z.ZodType>(DETAILS[type][form].shape).flatMap(([field, schema]) => {
      const name = `${pascal(type)}${pascal(field)}`;
      const inner = innerOf(schema);
      if (inner instanceof z.ZodObject) return [[`${name}${suffix}`, inner] as const];
      return inner instanceof z.ZodDiscriminatedUnion ? union(`${name}${suffix}`, inner, (tag) => `${name}${tag}${suffix}`) : [];
    }),
  );

/** In requests and in answers. */
const COMMON: Named = [
  ["ReadoutStatus", readoutStatusSchema],
  ...union("ReadoutState", readoutStateSchema),
  ...union("ReadoutFailure", reasonSchema),
  ["Capabilities", capabilitiesSchema],
  ["Sample", sampleSchema],
  ["Loss", lossSchema],
];

/** Schemas of the bodies of requests, by the names that generated clients give their types. */
export const REQUEST_SCHEMAS: Named = [
  ...COMMON,
  ["DataSourceCreate", dataSourceCreateSchema],
  ["DataSourcePatch", dataSourcePatchSchema],
  ...union("DataSourceDetailsCreate", detailsCreateSchema, (tag) => `${tag}DetailsCreate`),
  ...insideDetails("create", "Create"),
  ["DataSinkCreate", dataSinkCreateSchema],
  ["DataSinkPatch", dataSinkPatchSchema],
  ...union("DataSinkDetailsCreate", sinkDetailsCreateSchema, (tag) => `${tag}SinkDetailsCreate`),
  ["SiteCreate", siteCreateSchema],
  ["SitePatch", sitePatchSchema],
  ["VariableCreate", variableCreateSchema],
  ["VariablePatch", ROUTES.patchVariable.body],
  ["VariableBatch", ROUTES.changeVariables.body],
  ["VariableInput", variableInputSchema],
  ["VariableChange", variableChangeSchema],
  ["CollectorCreate", ROUTES.createCollector.body],
  ["CollectorPatch", ROUTES.patchCollector.body],
  ["MachineCreate", ROUTES.createMachine.body],
  ["MachinePatch", ROUTES.patchMachine.body],
  ["ReadoutStatusReports", ROUTES.putReadoutStatuses.body],
  ["ReadoutStatusReport", ROUTES.putReadoutStatuses.body.element],
  ["ValueBatch", valuesSchema],
  ["TimeseriesRequest", timeseriesRequestSchema],
];

/** Schemas of the bodies of answers. */
export const ANSWER_SCHEMAS: Named = [
  ...COMMON,
  ["DataSource", dataSourceResponseSchema],
  ["DataSourcePage", ROUTES.listDataSources.responses[200]],
  ...union("DataSourceDetails", detailsReadSchema, (tag) => `${tag}Details`),
  ...insideDetails("read", ""),
  ["DataSink", dataSinkResponseSchema],
  ["DataSinkPage", ROUTES.listDataSinks.responses[200]],
  ...union("DataSinkDetails", sinkDetailsReadSchema, (tag) => `${tag}SinkDetails`),
  ["Site", siteSchema],
  ["SitePage", ROUTES.listSites.responses[200]],
  ["Variable", variableSchema],
  ["VariablesChanged", ROUTES.changeVariables.responses[200]],
  ["VariablePage", ROUTES.listVariables.responses[200]],
  ["Collector", ROUTES.getCollector.responses[200]],
  ["CollectorPage", ROUTES.listCollectors.responses[200]],
  ["Machine", ROUTES.getMachine.responses[200]],
  ["MachinePage", ROUTES.listMachines.responses[200]],
  ["ValuesAccepted", ROUTES.postValues.responses[200]],
  ["LossTaken", ROUTES.putLoss.responses[200]],
  ["LossPage", ROUTES.listLosses.responses[200]],
  ["TimeseriesPage", ROUTES.postTimeseries.responses[200]],
  ["ExtensionInfo", ROUTES.getExtensions.responses[200]],
  ["StatusesAccepted", ROUTES.putReadoutStatuses.responses[200]],
  ["Revision", ROUTES.getRevision.responses[200]],
  ["Secrets", ROUTES.getSecrets.responses[200]],
  ["PageMetadata", pageMetadataSchema],
  ["Problem", problemSchema],
  ["ValidationProblem", validationErrorSchema],
  ["ValidationProblemEntry", validationErrorSchema.shape.detail.element],
];
