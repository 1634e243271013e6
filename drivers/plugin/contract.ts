import * as z from "zod";
import { clip } from "../../src/model/bounded-failure.ts";
import { DEVICE_FAULTS } from "../../src/model/fault.ts";
import { BOUND_TYPES } from "../../src/model/profile-details.ts";
import { reasonSchema } from "../../src/model/reason-schema.ts";

/** Version of what collector and plugin say to each other (docs/plugin-protocol.md). */
export const CONTRACT = 1;
/** Bytes of a line in either direction, its line feed not counted. */
export const MAX_LINE_BYTES = 262_144;
/** Variables of a page that a plugin is asked for. */
export const PAGE_VARIABLES = 200;
/** Milliseconds from its start to its first line. */
export const HELLO_MS = 10_000;
/** Milliseconds for `validate`, `close` and from `shutdown`, or the end of its input, to its end. */
export const [VALIDATE_MS, CLOSE_MS, SHUTDOWN_MS] = [5000, 2000, 2000];

export const VERBS = ["validate", "open", "read", "discover", "close", "shutdown"] as const;
export type Verb = (typeof VERBS)[number];

/** Characters that are kept of what a plugin says for people. */
const MAX_WORDS = 1000;
const words = z.string().transform((text) => clip(text, MAX_WORDS));

/** The first line of a plugin. Keys that are not known are passed over, here and in every line. */
export const helloSchema = z.object({
  hello: z.object({
    contract: z.literal(CONTRACT, `expected ${CONTRACT}, the version of the contract that this collector knows`),
    name: z.string().regex(/^[\w.-]{1,64}$/, "expected letters, digits, dots, dashes"),
    version: z.string().min(1).max(64),
    types: z.array(z.enum(BOUND_TYPES)).min(1).max(BOUND_TYPES.length),
    capabilities: z.object({
      /** Variables that it takes in one `read`. */
      max_points: z.int().min(1).max(500),
      discover: z.boolean(),
    }),
    /** JSON Schema of the `settings` that it takes. */
    settings_schema: z.record(z.string(), z.unknown()),
  }),
});
export type Hello = z.infer<typeof helloSchema>["hello"];

/** An error is a reason (the source failed) or a fault (what was asked for cannot be read), from the closed sets. */
export const errorSchema = z.union([
  z.object({ reason: reasonSchema, message: words }),
  z.object({ fault: z.enum(DEVICE_FAULTS), message: words }),
]);
export type PluginError = z.infer<typeof errorSchema>;

export const answerSchema = z.union([
  z.object({ id: z.int(), result: z.record(z.string(), z.unknown()) }),
  z.object({ id: z.int(), error: errorSchema }),
]);

/** NaN and infinities are numbers here: what they are is the fault of their variable. */
const number = z.custom<number>((value) => typeof value === "number", "expected a number");
const scalar = z.union([z.boolean(), number, z.string()]);

export const readingSchema = z.union([
  z.object({
    value: z.union([scalar, z.array(scalar)]),
    quality: z.enum(["good", "uncertain"]).default("good"),
    type: z.string().max(64).optional(),
    source_time: z.iso.datetime({ offset: true }).optional(),
  }),
  z.object({ fault: z.enum(DEVICE_FAULTS), detail: words.optional() }),
]);
export type RawReading = z.infer<typeof readingSchema>;

export const validatedSchema = z.object({ problems: z.array(words).max(50) });
export const readSchema = z.object({ readings: z.array(readingSchema) });
/** As the driver takes it: a reading that is none is the fault of its variable. */
export const looseReadSchema = z.object({ readings: z.array(z.unknown()) });
export const pageSchema = z.object({
  variables: z
    .array(
      z.object({
        address: z.string().min(1).max(1000),
        name: z.string().min(1).max(1000),
        type: z.string().max(64).nullable(),
        path: z.array(z.string().max(1000)).max(50).optional(),
        unit: z.string().max(100).optional(),
        comment: words.optional(),
      }),
    )
    .max(PAGE_VARIABLES),
  next: z.string().max(1000).nullable(),
});

/** What is wrong in a line, in words. */
export const issuesOf = (error: z.ZodError): string =>
  error.issues
    .slice(0, 3)
    .map(({ path, message }) => (path.length === 0 ? message : `${path.map(String).join(".")}: ${message}`))
    .join("; ");
