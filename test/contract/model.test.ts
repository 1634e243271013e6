import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  DETAILS,
  DETAILS_TYPES,
  detailsCreateSchema,
  detailsReadSchema,
  SECURITY_MODES,
  SECURITY_POLICIES,
} from "../../src/model/details.ts";
import { REASON_TYPES, reasonSchema } from "../../src/model/reason-schema.ts";
import {
  dataSinkCreateSchema,
  dataSinkPatchSchema,
  dataSinkResponseSchema,
  dataSinkSchema,
  dataSourceCreateSchema,
  dataSourcePatchSchema,
  dataSourceResponseSchema,
  dataSourceSchema,
  pageOf,
  readoutStatusReportSchema,
  siteCreateSchema,
  sitePatchSchema,
  siteSchema,
  validationErrorSchema,
} from "../../src/model/resources.ts";
import { SINK_DETAILS, SINK_TYPES, sinkDetailsCreateSchema, sinkDetailsReadSchema } from "../../src/model/sink-details.ts";
import { readoutStatusSchema } from "../../src/model/status.ts";
import {
  CREATE_DETAILS,
  CREATE_SINK_DETAILS,
  DATA_SINK,
  DATA_SINK_CREATE,
  DATA_SINK_PATCH,
  DATA_SOURCE,
  DATA_SOURCE_CREATE,
  DATA_SOURCE_PATCH,
  type Json,
  READ_DETAILS,
  READ_SINK_DETAILS,
  READOUT_STATUS,
  REASONS,
  type Row,
  SITE,
  SITE_CREATE,
  SITE_PAGE,
  SITE_PATCH,
} from "./api-v2.ts";
import { differences, type Form, sampleOf } from "./differences.ts";

/** One variant by itself: the tables give the fields beside the constant of its discriminator. */
const alone = (schema: z.ZodObject) => z.strictObject({ it: z.discriminatedUnion("type", [schema]).describe("it") });
const asRow = (variants: Readonly<Record<string, readonly Row[]>>, form: Form): readonly Row[] => [
  { field: "it", type: "union", discriminator: "type", variants, required: true, form },
];

describe.each([
  [DATA_SOURCE.section, "data source", dataSourceResponseSchema, DATA_SOURCE.shape],
  [READOUT_STATUS.section, "readout status", readoutStatusSchema, READOUT_STATUS.shape],
  [DATA_SOURCE_CREATE.section, "creation of a data source", dataSourceCreateSchema, DATA_SOURCE_CREATE.shape],
  [DATA_SOURCE_PATCH.section, "change of a data source", dataSourcePatchSchema, DATA_SOURCE_PATCH.shape],
  [DATA_SINK.section, "data sink", dataSinkResponseSchema, DATA_SINK.shape],
  [DATA_SINK_CREATE.section, "creation of a data sink", dataSinkCreateSchema, DATA_SINK_CREATE.shape],
  [DATA_SINK_PATCH.section, "change of a data sink", dataSinkPatchSchema, DATA_SINK_PATCH.shape],
  [SITE.section, "site", siteSchema, SITE.shape],
  [SITE_CREATE.section, "creation of a site", siteCreateSchema, SITE_CREATE.shape],
  [SITE_PATCH.section, "change of a site", sitePatchSchema, SITE_PATCH.shape],
  [SITE_PAGE.section, "page", pageOf(siteSchema), SITE_PAGE.shape],
] as const)("section %s, %s", (_section, _name, schema, shape) => {
  test("has these fields and no other, each as the document says", () => {
    expect(differences(schema, shape, "strict")).toEqual([]);
  });
});

describe("section 2.2 and 2.4, details", () => {
  test("the tables hold all ten types", () => {
    expect(Object.keys(READ_DETAILS).sort()).toEqual([...DETAILS_TYPES].sort());
    expect(Object.keys(CREATE_DETAILS).sort()).toEqual([...DETAILS_TYPES].sort());
    expect(Object.keys(DETAILS).sort()).toEqual([...DETAILS_TYPES].sort());
    expect(DETAILS_TYPES).toHaveLength(10);
  });

  test.each(DETAILS_TYPES)("%s on creation", (type) => {
    expect(differences(alone(DETAILS[type].create), asRow({ [type]: CREATE_DETAILS[type] ?? [] }, "strict"), "strict")).toEqual([]);
  });

  test.each(DETAILS_TYPES)("%s on read", (type) => {
    expect(differences(alone(DETAILS[type].read), asRow({ [type]: READ_DETAILS[type] ?? [] }, "stripping"), "strict")).toEqual([]);
  });

  test("the unions hold all of them", () => {
    const wrap = (it: z.ZodType) => z.strictObject({ it: it.describe("it") });
    expect(differences(wrap(detailsCreateSchema), asRow(CREATE_DETAILS, "strict"), "strict")).toEqual([]);
    expect(differences(wrap(detailsReadSchema), asRow(READ_DETAILS, "stripping"), "strict")).toEqual([]);
  });

  test.each(["create", "read"] as const)("opcua (%s): a mode other than None requires an endpoint policy other than None", (form) => {
    const sample = { type: "opcua", ...sampleOf((form === "create" ? CREATE_DETAILS : READ_DETAILS)["opcua"] ?? []) };
    for (const security_mode of SECURITY_MODES)
      for (const endpoint_security_policy of SECURITY_POLICIES)
        for (const token_security_policy of SECURITY_POLICIES) {
          const result = DETAILS.opcua[form].safeParse({
            ...sample,
            endpoint_url: "opc.tcp://plc:4840",
            security_settings: { security_mode, endpoint_security_policy, token_security_policy },
          });
          const fits = security_mode === "None" || endpoint_security_policy !== "None";
          expect(result.success).toBe(fits);
          if (!fits) expect(result.error?.issues[0]?.path).toEqual(["security_settings", "endpoint_security_policy"]);
        }
  });

  test("variants that appear on read only are refused on creation, at their discriminator", () => {
    const tries: readonly (readonly [string, string, Json, string])[] = [
      ["opcua", "user_identity", { type: "X509Certificate" }, "type"],
      ["vendor_gateway", "protocol_details", { protocol: "OTHER" }, "protocol"],
      ["plastcontrol", "readout_mode", { type: "passive" }, "type"],
      ["s7plus", "password", { type: "configured" }, "type"],
    ];
    for (const [type, field, value, discriminator] of tries) {
      const result = detailsCreateSchema.safeParse({ type, ...sampleOf(CREATE_DETAILS[type] ?? []), [field]: value });
      expect(result.error?.issues.map((issue) => issue.path)).toEqual([[field, discriminator]]);
      expect(detailsReadSchema.safeParse({ type, ...sampleOf(READ_DETAILS[type] ?? []), [field]: value }).success).toBe(true);
    }
  });
});

describe("section 2.5, details", () => {
  test("the tables hold every type", () => {
    expect(Object.keys(READ_SINK_DETAILS)).toEqual([...SINK_TYPES]);
    expect(Object.keys(CREATE_SINK_DETAILS)).toEqual([...SINK_TYPES]);
  });

  test.each(SINK_TYPES)("%s", (type) => {
    const [create, read] = [{ [type]: CREATE_SINK_DETAILS[type] ?? [] }, { [type]: READ_SINK_DETAILS[type] ?? [] }];
    expect(differences(alone(SINK_DETAILS[type].create), asRow(create, "strict"), "strict")).toEqual([]);
    expect(differences(alone(SINK_DETAILS[type].read), asRow(read, "stripping"), "strict")).toEqual([]);
  });

  test("the unions hold all of them", () => {
    const wrap = (it: z.ZodType) => z.strictObject({ it: it.describe("it") });
    expect(differences(wrap(sinkDetailsCreateSchema), asRow(CREATE_SINK_DETAILS, "strict"), "strict")).toEqual([]);
    expect(differences(wrap(sinkDetailsReadSchema), asRow(READ_SINK_DETAILS, "stripping"), "strict")).toEqual([]);
  });

  test("opcua: a mode other than None needs a policy other than None, a user stands once, nothing is secret on read", () => {
    const issues = (details: object) =>
      sinkDetailsCreateSchema.safeParse({ type: "opcua", ...details }).error?.issues.map(({ path }) => path.join("."));
    expect(issues({ security_modes: ["None", "Sign"], security_policies: ["None"] })).toEqual(["security_policies"]);
    expect(issues({ security_modes: ["None"], security_policies: ["None"] })).toBeUndefined();
    const user = { username: "a", password: "p" };
    expect(issues({ users: [user, user] })).toEqual(["users"]);
    expect(issues({ users: [user, { ...user, username: "A" }] })).toBeUndefined();
  });
});

describe("section 2.3, reasons", () => {
  test("there are the document's fourteen and no other, with their exact payloads", () => {
    expect([...REASON_TYPES].sort()).toEqual(Object.keys(REASONS).sort());
    expect(REASON_TYPES).toHaveLength(14);
    expect(differences(z.strictObject({ it: reasonSchema.describe("it") }), asRow(REASONS, "strict"), "strict")).toEqual([]);
  });
});

describe("what the collector takes", () => {
  const source = sampleOf(DATA_SOURCE.shape);
  const sink = sampleOf(DATA_SINK.shape);

  test("of a data source: fields of the document, its details as they came", () => {
    const details = { type: "of next year", inside: [1] };
    const taken = dataSourceSchema.parse({ ...source, details, readout_status: 7, capabilities: null, unheard_of: 1 });
    expect(taken.details).toEqual(details);
    expect(Object.keys(taken).filter((field) => !DATA_SOURCE.shape.some((row) => row.field === field))).toEqual([]);
    expect(taken).not.toHaveProperty("readout_status");
    expect(dataSourceSchema.parse({ ...source, details: null }).details).toBeNull();
    const { details: _left, ...rest } = source;
    expect(dataSourceSchema.parse(rest).details).toBeNull();
  });

  test("of a data sink: fields of the document, its details and type as they came", () => {
    const taken = dataSinkSchema.parse({ ...sink, type: "of next year", details: 7, name: null, unheard_of: 1 });
    expect(taken).toEqual({ ...sink, type: "of next year", details: 7, name: null });
  });

  test("of two spellings of one uuid: one", () => {
    const id = "0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1";
    expect(dataSourceSchema.parse({ ...source, uuid: id.toUpperCase() }).uuid).toBe(id);
  });
});

test("section 7: the body of a 422", () => {
  const entry = { loc: ["body", "details", 0], msg: "x", type: "y" };
  const takes = (value: unknown) => validationErrorSchema.safeParse({ detail: [value] }).success;
  expect(takes(entry)).toBe(true);
  expect(takes({ ...entry, input: { any: [1] }, ctx: { a: 1 } })).toBe(true);
  for (const field of ["loc", "msg", "type"]) expect(takes({ ...entry, [field]: undefined }), field).toBe(false);
  expect(takes({ ...entry, loc: [1.5] })).toBe(false);
  expect(takes({ ...entry, ctx: 1 })).toBe(false);
  expect(takes({ ...entry, unheard_of: 1 })).toBe(false);
  expect(validationErrorSchema.safeParse({ detail: "x" }).success).toBe(false);
});

test("the report of readout statuses", () => {
  const entry = { data_source: "0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1", readout_status: sampleOf(READOUT_STATUS.shape) };
  expect(readoutStatusReportSchema.parse([entry, { ...entry, capabilities: { variable_discovery: true } }])).toHaveLength(2);
  for (const wrong of [
    { ...entry, data_source: "press-1" },
    { ...entry, readout_status: {} },
    { ...entry, capabilities: {} },
    { ...entry, x: 1 },
  ])
    expect(readoutStatusReportSchema.safeParse([entry, wrong]).success).toBe(false);
});

describe("a row that is wrong is found", () => {
  const wrongs = (row: Row): readonly (readonly [string, readonly Row[]])[] => {
    const { default: _default, ours: _ours, ...rest } = row;
    const bare = rest as Row;
    const fallback = row.default ?? row.ours?.default;
    const changed: [string, readonly Row[]][] = [
      ["is missing", []],
      ["is one too many", [row, { ...row, field: `${row.field}_2` } as Row]],
      ["has another name", [{ ...row, field: `${row.field}_2` } as Row]],
      ["has another type", [{ field: row.field, type: row.type === "boolean" ? "integer" : "boolean", required: row.required }]],
      ["has another default", [{ ...row, default: fallback === 1 ? 2 : 1 } as Row]],
      ["is nullable or not", [{ ...row, nullable: !(row.nullable ?? row.ours?.nullable ?? false) } as Row]],
    ];
    if (fallback !== undefined) changed.push(["has no default", [bare]]);
    else changed.push(["is required or not", [{ ...row, required: !row.required, ours: { ...row.ours, required: !row.required } } as Row]]);
    if (row.type === "integer") changed.push(["has another bound", [{ ...row, min: 7, max: 8 }]]);
    if (row.type === "string" && !row.ours?.takes) changed.push(["has another length", [{ ...row, minLength: 3, maxLength: 4 }]]);
    if (row.type === "enum") {
      changed.push(["lacks a value", [{ ...row, values: row.values.slice(1) }]]);
      changed.push(["has a value too many", [{ ...row, values: [...row.values, "Another"] }]]);
    }
    if (row.type === "union") {
      changed.push(["lacks a variant", [{ ...row, variants: Object.fromEntries(Object.entries(row.variants).slice(1)) }]]);
      changed.push(["has a variant too many", [{ ...row, variants: { ...row.variants, Another: [] } }]]);
    }
    return changed;
  };

  const forms = DETAILS_TYPES.flatMap((type) => [
    {
      name: `${type} on creation`,
      type,
      schema: DETAILS[type].create as z.ZodObject,
      shape: CREATE_DETAILS[type] ?? [],
      form: "strict" as const,
    },
    {
      name: `${type} on read`,
      type,
      schema: DETAILS[type].read as z.ZodObject,
      shape: READ_DETAILS[type] ?? [],
      form: "stripping" as const,
    },
  ]);
  test.each(forms)("$name", ({ type, schema, shape, form }) => {
    for (const row of shape)
      for (const [what, rows] of wrongs(row)) {
        const wrong = shape.flatMap((other) => (other === row ? rows : [other]));
        expect(differences(alone(schema), asRow({ [type]: wrong }, form), "strict"), `${row.field} ${what}`).not.toEqual([]);
      }
    const other = form === "strict" ? "stripping" : "strict";
    expect(differences(alone(schema), asRow({ [type]: shape }, other), "strict"), "the other form").not.toEqual([]);
  });
});
