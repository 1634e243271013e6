import * as z from "zod";
import "./words/issue-words.ts";
import { uuidSchema } from "./uuid.ts";
import { TYPE_EXAMPLES, TYPE_WORD } from "./value.ts";

/** INACTIVE is not read. EXPLORATION is read and reaches CLI, page and platform, never MQTT or OPC UA. */
export const VARIABLE_STATUSES = ["INACTIVE", "EXPLORATION", "ACTIVE"] as const;

/** Longest texts of a variable, in UTF-16 units. */
export const VARIABLE_MAX = { name: 200, address: 4000, unit: 50, comment: 2000 } as const;

const fields = {
  name: z.string().min(1).max(VARIABLE_MAX.name).describe("Name, unique per data source"),
  address: z.string().min(1).max(VARIABLE_MAX.address).describe("Address in the grammar of the data source's driver"),
  type: z
    .string()
    .regex(TYPE_WORD, `expected ${TYPE_EXAMPLES}`)
    .nullable()
    .default(null)
    .describe(
      "Type of the value (uint16, float32, REAL, string(20), float32[10]) or a word of the driver's; null takes its default for the address",
    ),
  unit: z.string().max(VARIABLE_MAX.unit).nullable().default(null).describe("Unit of the value after scaling"),
  scaling: z
    .strictObject({
      factor: z.number().default(1).describe("The raw value is multiplied by this"),
      offset: z.number().default(0).describe("Added after the multiplication"),
    })
    .nullable()
    .default(null)
    .describe("Linear scaling; a scaled variable is a float64"),
  comment: z.string().max(VARIABLE_MAX.comment).nullable().default(null).describe("Remarks"),
  status: z
    .enum(VARIABLE_STATUSES)
    .default("ACTIVE")
    .describe("INACTIVE is not read; EXPLORATION is read, and published to the platform only"),
} as const;

/** A variable in a local file, or in a creation request without its data source. Unknown fields are errors. */
export const variableInputSchema = z.strictObject(fields);
/** A creation request (extension of ours). */
export const variableCreateSchema = z.strictObject({ data_source: uuidSchema.describe("The data source it is read from"), ...fields });
/** A variable as the API holds it (extension of ours). Unknown fields are dropped. */
export const variableSchema = z.object({ uuid: uuidSchema, data_source: uuidSchema, ...fields });

export type VariableInput = z.infer<typeof variableInputSchema>;
export type Variable = z.infer<typeof variableSchema>;
