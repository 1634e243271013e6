import * as z from "zod";
import { detailsWithoutUser, userLeftOutWords } from "../../model/endpoint-url.ts";
import { dataSinkResponseSchema, dataSourceResponseSchema, inventoryRecordSchema, siteSchema } from "../../model/resources.ts";
import { variableSchema } from "../../model/variable.ts";

/** Kinds of records, in the order in which they refer to each other. */
export const KINDS = ["sites", "collectors", "machines", "data_sources", "data_sinks", "variables"] as const;
export type Kind = (typeof KINDS)[number];

/** Lists that only a backup has: hashes of keys, sealed secrets, the audit trail. */
export const KEPT = ["api_keys", "secrets", "audit"] as const;
export type Kept = (typeof KEPT)[number];

const inventory = z.object({ uuid: inventoryRecordSchema.shape.uuid, name: inventoryRecordSchema.shape.name.default(null) });
const inventoryRecord = inventory.extend({ site: inventoryRecordSchema.shape.site.default(null) });
const source = dataSourceResponseSchema.shape;
const sink = dataSinkResponseSchema.shape;

/**
 * Records as a configuration API answers them, in the forms on read (API-V2, 2.1, 2.2, 2.5, 2.6). Without what a collector reports: status,
 * capabilities and times are not configuration.
 */
const RECORDS = {
  sites: z.object(siteSchema.shape),
  collectors: inventoryRecord,
  machines: inventoryRecord,
  data_sources: z.object({
    uuid: source.uuid,
    collector: source.collector,
    machine: source.machine,
    type: source.type,
    name: source.name,
    manufacturer: source.manufacturer.default(null),
    device_model: source.device_model.default(null),
    note: source.note.default(null),
    readout_interval: source.readout_interval,
    readout_limit: source.readout_limit.default(null),
    details: source.details,
  }),
  data_sinks: z.object({
    uuid: sink.uuid,
    collector: sink.collector,
    type: sink.type,
    name: sink.name.default(null),
    details: sink.details,
  }),
  variables: variableSchema,
} as const satisfies { readonly [K in Kind]: z.ZodObject };

export type ImportedRecords = { readonly [K in Kind]: readonly z.output<(typeof RECORDS)[K]>[] };

export interface ParsedImport {
  readonly records: ImportedRecords;
  /** What makes the file unusable, each by its record and field. */
  readonly problems: readonly string[];
  /** What is taken in another form than the file has. */
  readonly warnings: readonly string[];
}

/** What else the API answers; it comes from those who report it. */
const REPORTED: ReadonlySet<string> = new Set(["readout_status", "last_readout_at", "capabilities"]);
const MAX_WARNINGS = 100;

const page = z.object({ data: z.array(z.unknown()), metadata: z.object({ next_cursor: z.string().nullish() }).optional() });

/**
 * Reads what `collector api export` and backups hold: an object with a list for each kind. Instead of a list there may be a page as the API answers it, or
 * a list of pages; a page or list alone is recognised by its records. Every record is looked at. Pure.
 */
export function parseImport(content: unknown): ParsedImport {
  const problems: string[] = [];
  const warnings: string[] = [];
  const given = new Map<Kind, readonly unknown[]>();
  const listOf = (value: unknown, at: string): readonly unknown[] => {
    const paged = page.safeParse(value);
    if (paged.success) {
      if (paged.data.metadata?.next_cursor)
        warnings.push(`${at}: more pages follow this one (metadata.next_cursor): they are not in the file`);
      return paged.data.data;
    }
    if (!Array.isArray(value)) {
      problems.push(`${at}: must be a list of records, or a page with data`);
      return [];
    }
    return value.flatMap((item: unknown, n) => (page.safeParse(item).success ? listOf(item, `${at}[${n}]`) : [item]));
  };
  if (isObject(content) && !Array.isArray(content) && !("data" in content)) {
    for (const [name, value] of Object.entries(content)) {
      const kind = KINDS.find((one) => one === name);
      if (kind) given.set(kind, listOf(value, name));
      else if (KEPT.some((one) => one === name)) warnings.push(`${name}: is not taken over: \`collector api restore\` restores it`);
      else if (name === "version" && value !== 1)
        problems.push(`version: this collector reads version 1, and the file has ${String(value)}`);
      else if (name !== "version") problems.push(`${name}: is not a kind of record; there are: ${KINDS.join(", ")}`);
    }
    if (given.size === 0 && problems.length === 0) problems.push(`there are no records in it; expected ${KINDS.join(", ")}`);
  } else {
    const records = isObject(content) ? listOf(content, "the file") : [];
    const kind = kindOf(records[0]);
    if (kind) given.set(kind, records);
    else if (!isObject(content) || records.length > 0)
      problems.push(`it holds no records of a kind that can be recognised; name them: {"data_sources": […]}`);
  }

  const records: Record<Kind, unknown[]> = { sites: [], collectors: [], machines: [], data_sources: [], data_sinks: [], variables: [] };
  for (const kind of KINDS) {
    const seen = new Map<string, string>();
    for (const [n, record] of (given.get(kind) ?? []).entries()) {
      const at = `${kind}[${n}]${nameOf(record)}`;
      const parsed = RECORDS[kind].safeParse(record);
      if (!parsed.success) {
        problems.push(...issueWords(parsed.error).map((words) => `${at}: ${words}`));
        continue;
      }
      const { uuid } = parsed.data;
      const first = seen.get(uuid);
      if (first !== undefined) problems.push(`${at}: uuid: ${uuid} is at ${first} too`);
      seen.set(uuid, at);
      const { data } = parsed;
      if ("details" in data && "type" in data && data.details !== null && data.details.type !== data.type)
        problems.push(`${at}: type: ${data.type} differs from details.type, ${data.details.type}`);
      const { details, fields: withUser } = detailsWithoutUser("details" in data ? data.details : null);
      if (withUser.length > 0 && warnings.length < MAX_WARNINGS) warnings.push(`${at}: ${userLeftOutWords(withUser)}`);
      for (const field of leftOut(record, data)) if (warnings.length < MAX_WARNINGS) warnings.push(`${at}: ${field}: is not taken over`);
      records[kind].push(withUser.length > 0 ? { ...data, details } : data);
    }
  }
  // Each is what its own schema made of it.
  return { records: records as unknown as ImportedRecords, problems, warnings };
}

const issueWords = ({ issues }: z.ZodError): readonly string[] =>
  issues.map(({ path, message }) => `${path.length > 0 ? `${path.join(".")}: ` : ""}${message}`);

/** Why an import or a restore would refuse the record, with its name; undefined: it takes it. Pure. */
export function refusalOf(kind: Kind, record: unknown): string | undefined {
  const { error } = RECORDS[kind].safeParse(record);
  return error && `${kind}${nameOf(record)}: ${issueWords(error).join("; ")}`;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null;

function kindOf(record: unknown): Kind | undefined {
  if (!isObject(record)) return undefined;
  if ("data_source" in record) return "variables";
  if ("details" in record) return "machine" in record ? "data_sources" : "data_sinks";
  if ("site" in record) return undefined;
  return "name" in record ? "sites" : undefined;
}

/** How a person knows the record. */
function nameOf(record: unknown): string {
  const name = isObject(record) ? (record["name"] ?? record["uuid"]) : undefined;
  return typeof name === "string" ? ` (${name.slice(0, 80)})` : "";
}

/** Paths of fields that were given and are not in what was made of them. */
function leftOut(given: unknown, made: unknown, path = ""): readonly string[] {
  if (!isObject(given) || !isObject(made)) return [];
  return Object.entries(given).flatMap(([field, value]) => {
    if (path === "" && REPORTED.has(field)) return [];
    return Object.hasOwn(made, field) ? leftOut(value, made[field], `${path}${field}.`) : [path + field];
  });
}
