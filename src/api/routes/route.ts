import * as z from "zod";
import { boundedArray } from "../../model/bounded.ts";
import { validationErrorSchema } from "../../model/resources.ts";
import { uuidSchema } from "../../model/uuid.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** One operation of the API, as data: the server, its OpenAPI description and the command line are made from it. */
export interface Route {
  readonly method: Method;
  /** Below `{base_url}/api`; parameters in braces, as API-V2 writes them. */
  readonly path: `/${string}`;
  /** Section of API-V2 that describes it; `ours` for what that document does not have. */
  readonly section: string;
  readonly summary: string;
  /** May change without notice (API-V2, 1). */
  readonly experimental?: true;
  /** Takes If-Match with the ETag of the record (RFC 9110, 13.1.1) and answers 412 where the record has changed since. */
  readonly conditional?: true;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** Bound of the body, in bytes; absent: the server's. */
  readonly bodyBytes?: number;
  /** Integers beyond 2^53 in the body become bigints instead of losing digits. */
  readonly exactIntegers?: true;
  /** Bodies by status; null: none. */
  readonly responses: Readonly<Record<number, z.ZodType | null>>;
}

/** Keeps the schemas' own types, checks the rest. */
export const route = <const R extends Route>(definition: R): R => definition;

/** Whose the operation is: of version 2, of it but subject to change, or ours. */
export const tagOf = ({ section, experimental }: Route): "v2" | "experimental" | "extension" =>
  section === "ours" ? "extension" : experimental ? "experimental" : "v2";

/** Everything but a 422 (design/api-decisions). */
export const problemSchema = z.strictObject({ detail: z.string().describe("What is wrong and what would be right") });

/** The errors that every operation can answer; others have the body of a problem as well. */
export const COMMON_ERRORS = { 401: problemSchema, 422: validationErrorSchema, 429: problemSchema, 503: problemSchema } as const;

/** Items of one filter (API-V2, 8). */
const MAX_FILTER_ITEMS = 50;

/** A filter in the query: the key repeated for each value, OR between them (design/api-decisions). */
export const uuidFilter = (what: string) =>
  boundedArray(uuidSchema, MAX_FILTER_ITEMS)
    .min(1)
    .refine((values) => new Set(values).size === values.length, "the values are not unique: give each of them once")
    .meta({ uniqueItems: true })
    .optional()
    .describe(`Only those with one of these ${what}; at most ${MAX_FILTER_ITEMS}, each once`);

export const cursorParameter = z
  .string()
  .min(1)
  .optional()
  .describe("next_cursor of the previous page; the other parameters stay unchanged");

export const byUuid = z.strictObject({ uuid: uuidSchema.describe("Identifier of the record") });
