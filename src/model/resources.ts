import * as z from "zod";
import { boundedArray, boundedRecord } from "./bounded.ts";
import { detailsCreateSchema, detailsReadSchema } from "./details.ts";
import { ADDRESS_FIELDS, type AddressField, detailsWithoutUser } from "./endpoint-url.ts";
import { SINK_TYPES, sinkDetailsCreateSchema, sinkDetailsReadSchema } from "./sink-details.ts";
import { readoutStatusSchema } from "./status.ts";
import { uuidSchema } from "./uuid.ts";

const MAX_SINK_NAME = 200;
const SINK_NAME = "Human-readable name, unique per collector";

const uuid = uuidSchema.describe("Identifier of the data source");
const sinkUuid = uuidSchema.describe("Identifier of the data sink");
const reader = uuidSchema.describe("The collector that reads from this data source");
const publisher = uuidSchema.describe("The collector that publishes to this sink");
const machine = uuidSchema.describe("The machine on which the data source is located");
const name = z.string().describe("Human-readable name");
const manufacturer = z.string().nullable().describe("Manufacturer of the data source");
const deviceModel = z.string().nullable().describe("Model or name that describes the data source as concretely as possible");
const note = z.string().nullable().describe("General remarks");
const readoutInterval = z.int().describe("Time between two readouts, in seconds unless readout_interval_unit says milliseconds");
const LIMIT = "At most this many variables are read per readout; null: no limit";
const readoutLimit = z.int().nullable().describe(LIMIT);
/** Of what is set; what comes from elsewhere is its source's own trouble. */
const AT_LEAST_ONE = "expected a whole number from 1";
/** Fields of the details in one PATCH: many times those of the largest type. */
const MAX_DETAILS_FIELDS = 100;
const changedDetails = boundedRecord(z.unknown(), MAX_DETAILS_FIELDS);
const anyDetails = z.unknown().describe("Connection properties; the type decides which ones");

export const capabilitiesSchema = z.strictObject({ variable_discovery: z.boolean().describe("Whether variable discovery is supported") });

const base = {
  uuid,
  type: z.string().describe("Type of the data source"),
  readout_limit: readoutLimit,
  readout_interval: readoutInterval,
  name,
  collector: reader,
  manufacturer,
  device_model: deviceModel,
  note,
  machine,
} as const;

/** A field that is missing, null or of another kind counts as null. */
const orNull = <T extends z.ZodType>(schema: T) => schema.nullable().catch(null);

const typeIn = (details: unknown): string | undefined =>
  typeof details === "object" && details !== null && "type" in details && typeof details.type === "string" ? details.type : undefined;

/** Addresses that a user or a password was taken out of; the kept configuration holds it too. */
const userLeftOut = z.array(z.enum(ADDRESS_FIELDS)).optional().catch(undefined);

interface Received {
  readonly details: unknown;
  readonly user_left_out_of?: readonly AddressField[] | undefined;
}

/**
 * Details without the fields that are null, which are absent there too, and without user and password in an address: from here on they
 * would be logged, kept, shown and sent to the device.
 */
function cleaned({ details, user_left_out_of }: Received): { details: unknown; user_left_out_of?: readonly AddressField[] } {
  if (typeof details !== "object" || details === null || Array.isArray(details)) return { details };
  const given = Object.fromEntries(Object.entries(details).filter(([, value]) => value !== null));
  const { details: bare, fields } = detailsWithoutUser(given);
  const leftOut = ADDRESS_FIELDS.filter((field) => fields.includes(field) || user_left_out_of?.includes(field));
  return { details: bare, ...(leftOut.length > 0 && { user_left_out_of: leftOut }) };
}

/**
 * A data source as the collector takes it from the API (API-V2, 2.1): `uuid` is all that it needs. Unknown fields are dropped; `details`
 * are left as they came but for fields that are null and passwords in addresses, so that a bad one is this source's status and hurts no other. Without a collector it belongs to
 * the one that asked for it; without a name its uuid is the name.
 */
export const dataSourceSchema = z
  .object({
    uuid,
    type: orNull(z.string()),
    readout_limit: orNull(z.int()),
    /** Null: none is given. */
    readout_interval: orNull(z.int()),
    name: orNull(z.string()),
    collector: reader.nullable().default(null),
    manufacturer: orNull(z.string()),
    device_model: orNull(z.string()),
    note: orNull(z.string()),
    machine: orNull(machine),
    details: anyDetails.default(null),
    user_left_out_of: userLeftOut,
  })
  .transform(({ user_left_out_of, ...record }) => ({
    ...record,
    type: record.type ?? typeIn(record.details) ?? "",
    name: record.name ?? record.uuid,
    ...cleaned({ ...record, user_left_out_of }),
  }));

/** Of a data source as it came, the fields that something else stands in for, said because they decide how it is read. Pure. */
export function unusableSourceFields(item: Readonly<Record<string, unknown>>): readonly ("readout_interval" | "readout_limit" | "name")[] {
  const { readout_interval, readout_limit, name } = item;
  return [
    ...(Number.isSafeInteger(readout_interval) ? [] : (["readout_interval"] as const)),
    ...(Number.isSafeInteger(readout_limit ?? 0) ? [] : (["readout_limit"] as const)),
    ...(typeof name === "string" ? [] : (["name"] as const)),
  ];
}

/** A data source as the API answers it, with every field of API-V2, 2.1, and no other. */
export const dataSourceResponseSchema = z.strictObject({
  ...base,
  readout_status: readoutStatusSchema.describe("How the last readout went"),
  capabilities: capabilitiesSchema.describe("What the data source can do"),
  last_readout_at: z.iso
    .datetime({ offset: true })
    .nullable()
    .meta({ deprecated: true })
    .describe("Deprecated: the same as readout_status.last_readout_at"),
  details: detailsReadSchema.nullable().describe("Connection properties"),
});

/** API-V2, 2.4. Unknown fields are errors. */
export const dataSourceCreateSchema = z.strictObject({
  name,
  collector: reader,
  machine,
  manufacturer: manufacturer.default(null),
  device_model: deviceModel.default(null),
  note: note.default(null),
  details: detailsCreateSchema.describe("Connection properties"),
});

/**
 * A partial creation form, with readout_interval and readout_limit, in which no default is applied (design/api-decisions). `details` hold the fields
 * to replace; the record that results is validated by whoever holds the other fields.
 */
export const dataSourcePatchSchema = z
  .strictObject({
    name: z.exactOptional(name),
    manufacturer: z.exactOptional(manufacturer),
    device_model: z.exactOptional(deviceModel),
    note: z.exactOptional(note),
    machine: z.exactOptional(machine),
    readout_interval: z.exactOptional(readoutInterval.min(1, AT_LEAST_ONE)),
    readout_limit: z.exactOptional(z.int().min(1, `${AT_LEAST_ONE}, or null`).nullable().describe(LIMIT)),
    details: z.exactOptional(changedDetails).describe("The fields of the details to replace, each as a whole"),
  })
  .describe("Only the fields that are present change");

/** Counted in code points, as JSON Schema counts; not in UTF-16 units. */
const sinkName = z
  .string()
  .refine((text) => text !== "" && [...text].length <= MAX_SINK_NAME, `expected 1 to ${MAX_SINK_NAME} characters`)
  .meta({ minLength: 1, maxLength: MAX_SINK_NAME })
  .describe(SINK_NAME);

/** A data sink as the collector takes it from the API (API-V2, 2.5), as a data source. */
export const dataSinkSchema = z
  .object({
    uuid: sinkUuid,
    name: orNull(z.string()),
    collector: publisher.nullable().default(null),
    type: orNull(z.string()),
    details: anyDetails.default(null),
    user_left_out_of: userLeftOut,
  })
  .transform(({ user_left_out_of, ...record }) => ({
    ...record,
    type: record.type ?? typeIn(record.details) ?? "",
    ...cleaned({ ...record, user_left_out_of }),
  }));

/** A data sink as the API answers it, with every field of API-V2, 2.5, and no other. */
export const dataSinkResponseSchema = z.strictObject({
  uuid: sinkUuid,
  name: sinkName.nullable().describe(SINK_NAME),
  collector: publisher,
  type: z.enum(SINK_TYPES).describe("Type of the data sink; equals details.type"),
  details: sinkDetailsReadSchema.describe("Connection and publishing properties"),
});

/** API-V2, 4.2. Unknown fields are errors. */
export const dataSinkCreateSchema = z.strictObject({
  name: sinkName.nullable().default(null).describe(SINK_NAME),
  collector: publisher,
  details: sinkDetailsCreateSchema.describe("Connection and publishing properties"),
});

/** API-V2, 4.2; as with data sources, no default is applied. */
export const dataSinkPatchSchema = z
  .strictObject({
    name: z.exactOptional(sinkName),
    details: z.exactOptional(changedDetails).describe("The fields of the details to replace, each as a whole"),
  })
  .describe("Only the fields that are present change");

const siteName = z.string().describe("Name of the site");

/** API-V2, 2.6. */
export const siteSchema = z.strictObject({ uuid: uuidSchema.describe("Identifier of the site"), name: siteName });

/** API-V2, 4.3. Unknown fields are errors. */
export const siteCreateSchema = z.strictObject({ name: siteName });

/** API-V2, 4.3; no default is applied. */
export const sitePatchSchema = z.strictObject({ name: z.exactOptional(siteName) }).describe("Only the fields that are present change");

const MAX_INVENTORY_NAME = 200;
const inventory = {
  name: z.string().min(1).max(MAX_INVENTORY_NAME).nullable().describe("Human-readable name; null: none was given"),
  site: uuidSchema.nullable().describe("The site at which it is located; null: none was given"),
} as const;

/** A machine, or a collector, as our extension answers it. */
export const inventoryRecordSchema = z.strictObject({ uuid: uuidSchema.describe("Identifier of the record"), ...inventory });

/** A machine or collector that already has an identifier elsewhere brings it along. Unknown fields are errors. */
export const inventoryCreateSchema = z.strictObject({
  uuid: z.exactOptional(uuidSchema).describe("Identifier that it already has; absent: a new one"),
  name: inventory.name.default(null),
  site: inventory.site.default(null),
});

export const inventoryPatchSchema = z
  .strictObject({ name: z.exactOptional(inventory.name), site: z.exactOptional(inventory.site) })
  .describe("Only the fields that are present change");

const nextCursor = z.string().nullable().describe("Opaque cursor of the next page; null: no more data");

export const pageMetadataSchema = z.strictObject({ next_cursor: nextCursor });

/** The envelope of a page (API-V2, 2.7 and 4.5). No other properties. */
export function pageOf<T extends z.ZodType>(record: T) {
  return z.strictObject({
    data: z.array(record).describe("The records on this page"),
    metadata: pageMetadataSchema.describe("About the page"),
  });
}

/** The body of a 422 (API-V2, 7). */
export const validationErrorSchema = z.strictObject({
  detail: z
    .array(
      z.strictObject({
        loc: z.array(z.union([z.string(), z.int()])).describe("Location of the problem"),
        msg: z.string().describe("What is wrong and what would be right"),
        type: z.string().describe("Type of the error"),
        input: z.unknown().optional().describe("What was there; never an object and never near a secret"),
        ctx: z.record(z.string(), z.unknown()).optional().describe("Further data on the error"),
      }),
    )
    .describe("One entry per problem"),
});

/** Reports in one body: more than the shortest ones that fill the 512 KiB which the collector sends at once. */
const MAX_REPORTS = 5000;

/** What a collector reports of its data sources, many at once (extension of ours, PUT /ext/v1/readout-statuses). */
export const readoutStatusReportSchema = boundedArray(
  z.strictObject({
    data_source: uuidSchema.describe("The data source"),
    readout_status: readoutStatusSchema.describe("How the last readout went"),
    capabilities: z.exactOptional(capabilitiesSchema).describe("What the data source can do; absent: unchanged"),
  }),
  MAX_REPORTS,
);

export type DataSource = z.output<typeof dataSourceSchema>;
export type DataSourceResponse = z.output<typeof dataSourceResponseSchema>;
export type DataSourceCreate = z.output<typeof dataSourceCreateSchema>;
export type DataSourcePatch = z.output<typeof dataSourcePatchSchema>;
export type DataSink = z.output<typeof dataSinkSchema>;
export type DataSinkResponse = z.output<typeof dataSinkResponseSchema>;
export type DataSinkCreate = z.output<typeof dataSinkCreateSchema>;
export type DataSinkPatch = z.output<typeof dataSinkPatchSchema>;
export type Site = z.output<typeof siteSchema>;
export type SiteCreate = z.output<typeof siteCreateSchema>;
export type SitePatch = z.output<typeof sitePatchSchema>;
export type InventoryRecord = z.output<typeof inventoryRecordSchema>;
export type InventoryCreate = z.output<typeof inventoryCreateSchema>;
export type InventoryPatch = z.output<typeof inventoryPatchSchema>;
export type Page<T> = { readonly data: readonly T[]; readonly metadata: { readonly next_cursor: string | null } };
export type ReadoutStatusReport = z.output<typeof readoutStatusReportSchema>;
