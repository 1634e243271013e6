import * as z from "zod";
import { pageOf } from "../../model/resources.ts";
import { byUuid, COMMON_ERRORS, cursorParameter, problemSchema, type Route, route } from "./route.ts";

/** One kind of record, as its five operations describe it. */
interface Kind<R extends z.ZodType, C extends z.ZodType, P extends z.ZodType, F extends Readonly<Record<string, z.ZodType>>>
  extends Pick<Route, "path" | "section" | "experimental"> {
  readonly record: R;
  readonly create: C;
  readonly patch: P;
  /** Of the list, in addition to the cursor. */
  readonly filters: F;
  readonly summaries: Readonly<Record<"list" | "create" | "get" | "patch" | "delete", string>>;
  /** Statuses of problems that an operation answers in addition to COMMON_ERRORS, and for one record to 404 and 412. */
  readonly problems: Readonly<Record<"create" | "patch" | "delete", readonly (403 | 409)[]>>;
}

const problemsOf = (statuses: readonly number[]): Readonly<Record<number, z.ZodType>> => ({
  ...Object.fromEntries(statuses.map((status) => [status, problemSchema])),
  ...COMMON_ERRORS,
});

/** List, create, get, patch and delete, as every kind of record has them. */
export function recordRoutes<R extends z.ZodType, C extends z.ZodType, P extends z.ZodType, F extends Readonly<Record<string, z.ZodType>>>(
  kind: Kind<R, C, P, F>,
) {
  const { path, section, experimental, record, summaries, problems } = kind;
  const common = { section, ...(experimental && { experimental }) };
  const one = { ...common, path: `${path}/{uuid}`, params: byUuid } as const;
  return {
    list: route({
      ...common,
      method: "GET",
      path,
      summary: summaries.list,
      query: z.strictObject({ cursor: cursorParameter, ...kind.filters }),
      responses: { 200: pageOf(record), ...COMMON_ERRORS },
    }),
    create: route({
      ...common,
      method: "POST",
      path,
      summary: summaries.create,
      body: kind.create,
      responses: { 201: record, ...problemsOf(problems.create) },
    }),
    get: route({ ...one, method: "GET", summary: summaries.get, responses: { 200: record, 304: null, ...problemsOf([404]) } }),
    patch: route({
      ...one,
      method: "PATCH",
      conditional: true,
      summary: summaries.patch,
      body: kind.patch,
      responses: { 204: null, ...problemsOf([404, 412, ...problems.patch]) },
    }),
    delete: route({
      ...one,
      method: "DELETE",
      conditional: true,
      summary: summaries.delete,
      responses: { 204: null, ...problemsOf([404, 412, ...problems.delete]) },
    }),
  };
}
