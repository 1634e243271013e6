import { NOT_OFFERED } from "../../api/offers.ts";
import { MAX_BATCH } from "../../api/routes/extensions.ts";
import type { Variable, VariableInput } from "../../model/variable.ts";
import { type ApiConnection, ApiError } from "./api-connection.ts";
import type { ImportPlan } from "./variables-plan.ts";

const PATH = "/ext/v1/variables";
/** Well below the bound of a body that our own server, or a proxy before another one, takes. */
const MAX_BATCH_BYTES = 256 * 1024;
/** Requests under way at once where the API takes one variable a request. */
const AT_ONCE = 4;

/** One change of a plan. */
type Change =
  | { readonly kind: "delete"; readonly item: string }
  | { readonly kind: "change"; readonly item: { readonly uuid: string } }
  | { readonly kind: "create"; readonly item: VariableInput };

/** Deletions come last: until then, all that was made can be taken back. */
const changesOf = ({ remove, change, create }: ImportPlan): readonly Change[] => [
  ...change.map(({ uuid, fields }): Change => ({ kind: "change", item: { uuid, ...fields } })),
  ...create.map((item): Change => ({ kind: "create", item })),
  ...remove.map(({ uuid }): Change => ({ kind: "delete", item: uuid })),
];

/**
 * Sends a plan as sendPlan does. What was made before a request failed is taken back; a deleted variable gets another uuid by that. `present`:
 * the variables before the plan; `list`: those now. Throws ApiError; its message says whether the source is as it was.
 */
export async function sendWhole(
  api: ApiConnection,
  source: string,
  plan: ImportPlan,
  { present, list }: { readonly present: readonly Variable[]; readonly list: () => Promise<readonly Variable[]> },
): Promise<void> {
  const made: Change[] = [];
  try {
    await sendPlan(api, source, plan, made);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { status, refusedAt } = error;
    const told = (message: string): ApiError =>
      new ApiError({ message: `${error.message}; ${message}`, ...(status !== undefined && { status }), ...(refusedAt && { refusedAt }) });
    if (made.length === 0) throw told("nothing was changed");
    try {
      await sendPlan(api, source, undoOf(made, present, await list()));
    } catch {
      const count = plan.create.length + plan.change.length + plan.remove.length;
      throw told(`at least ${made.length} of ${count} changes were made and could not be taken back: import the file again`);
    }
    throw told("what was changed until then was taken back");
  }
}

/** The plan that undoes changes. */
function undoOf(made: readonly Change[], present: readonly Variable[], now: readonly Variable[]): ImportPlan {
  const byUuid = new Map(present.map((variable) => [variable.uuid, variable]));
  const created = new Set(made.flatMap((change) => (change.kind === "create" ? [change.item.name] : [])));
  const before = (kind: "change" | "delete") =>
    made.flatMap((change) => {
      const uuid = change.kind === "change" ? change.item.uuid : change.kind === "delete" ? change.item : "";
      const known = change.kind === kind ? byUuid.get(uuid) : undefined;
      if (!known) return [];
      const { uuid: _, data_source: __, ...fields } = known;
      return [{ uuid, fields }];
    });
  return {
    create: before("delete").map(({ fields }) => fields),
    change: before("change"),
    remove: now.filter(({ name }) => created.has(name)),
    same: 0,
  };
}

/**
 * Brings the variables of a data source to a plan, many in one request, each of which is taken as a whole; one by one where the API has no
 * such operation. Variables are created in the order of the plan. `made` gets each change that was made. Throws ApiError.
 */
export async function sendPlan(api: ApiConnection, source: string, plan: ImportPlan, made: Change[] = []): Promise<void> {
  const changes = changesOf(plan);
  let isFirst = true;
  for (const batch of batchesOf(changes)) {
    const of = (kind: Change["kind"]) => batch.filter((one) => one.kind === kind).map(({ item }) => item);
    try {
      await api.send("POST", `${PATH}/batch`, { data_source: source, delete: of("delete"), change: of("change"), create: of("create") });
    } catch (error) {
      const isMissing = isFirst && error instanceof ApiError && NOT_OFFERED.has(error.status ?? 0);
      if (!isMissing) throw error;
      return sendSingly(api, source, plan, made);
    }
    made.push(...batch);
    isFirst = false;
  }
}

/** At most MAX_BATCH changes and, but for a single one, MAX_BATCH_BYTES each. */
function* batchesOf(changes: readonly Change[]): Generator<readonly Change[]> {
  let batch: Change[] = [];
  let bytes = 0;
  for (const change of changes) {
    const size = Buffer.byteLength(JSON.stringify(change.item)) + 1;
    if (batch.length > 0 && (batch.length >= MAX_BATCH || bytes + size > MAX_BATCH_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(change);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

async function sendSingly(api: ApiConnection, source: string, { remove, change, create }: ImportPlan, made: Change[]): Promise<void> {
  await severalAtOnce(change, async ({ uuid, fields }) => {
    await api.send("PATCH", `${PATH}/${uuid}`, fields);
    made.push({ kind: "change", item: { uuid } });
  });
  // Their order is that of the list.
  for (const fields of create) {
    await api.send("POST", PATH, { data_source: source, ...fields });
    made.push({ kind: "create", item: fields });
  }
  await severalAtOnce(remove, async ({ uuid }) => {
    await api.send("DELETE", `${PATH}/${uuid}`);
    made.push({ kind: "delete", item: uuid });
  });
}

async function severalAtOnce<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = items.values();
  const rest = async (): Promise<void> => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, rest));
}
