import { NOT_OFFERED } from "../../api/offers.ts";
import { MAX_BATCH } from "../../api/routes/extensions.ts";
import { type ApiConnection, ApiError } from "./api-connection.ts";
import type { ImportPlan } from "./variables-plan.ts";

const PATH = "/ext/v1/variables";
/** Well below the bound of a body that our own server, or a proxy before another one, takes. */
const MAX_BATCH_BYTES = 256 * 1024;
/** Requests under way at once where the API takes one variable a request. */
const AT_ONCE = 4;

/** One change of a plan, in the order in which they are made: names that are given up are free for those that come. */
type Change =
  | { readonly kind: "delete"; readonly item: string }
  | { readonly kind: "change"; readonly item: { readonly uuid: string } }
  | { readonly kind: "create"; readonly item: object };

const changesOf = ({ remove, change, create }: ImportPlan): readonly Change[] => [
  ...remove.map(({ uuid }): Change => ({ kind: "delete", item: uuid })),
  ...change.map(({ uuid, fields }): Change => ({ kind: "change", item: { uuid, ...fields } })),
  ...create.map((item): Change => ({ kind: "create", item })),
];

/**
 * Brings the variables of a data source to a plan, many in one request, each of which is taken as a whole; one by one where the API has no
 * such operation. Variables are created in the order of the plan. Throws ApiError.
 */
export async function sendPlan(api: ApiConnection, source: string, plan: ImportPlan): Promise<void> {
  const changes = changesOf(plan);
  let isFirst = true;
  for (const batch of batchesOf(changes)) {
    const of = (kind: Change["kind"]) => batch.filter((one) => one.kind === kind).map(({ item }) => item);
    try {
      await api.send("POST", `${PATH}/batch`, { data_source: source, delete: of("delete"), change: of("change"), create: of("create") });
    } catch (error) {
      const isMissing = isFirst && error instanceof ApiError && NOT_OFFERED.has(error.status ?? 0);
      if (!isMissing) throw error;
      return sendSingly(api, source, plan);
    }
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

async function sendSingly(api: ApiConnection, source: string, { remove, change, create }: ImportPlan): Promise<void> {
  await severalAtOnce(remove, ({ uuid }) => api.send("DELETE", `${PATH}/${uuid}`));
  await severalAtOnce(change, ({ uuid, fields }) => api.send("PATCH", `${PATH}/${uuid}`, fields));
  // Their order is that of the list.
  for (const fields of create) await api.send("POST", PATH, { data_source: source, ...fields });
}

async function severalAtOnce<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = items.values();
  const rest = async (): Promise<void> => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, rest));
}
