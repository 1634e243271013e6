import { type Packed, type PackIndex, type PayloadOf, readBody, readHead } from "./pack.ts";
import { isWhole } from "./pack-bytes.ts";
import { type BatchRow, checksumOf } from "./schema.ts";

/** A pack of a damaged file that is as it was written. */
export interface WholePack extends Packed {
  readonly index: PackIndex;
  /** The first id in it, and the last. */
  readonly id: number;
  readonly last: number;
}

/** Undefined: it is not as it was written. Pure. */
export function wholePack({ id, head, body }: Packed & { readonly id: number }): WholePack | undefined {
  try {
    if (!isWhole(body)) return undefined;
    const index = readHead(head);
    return index.ids[0] === id ? { id, last: index.ids.at(-1) ?? id, index, head, body } : undefined;
  } catch {
    return undefined;
  }
}

/** A row of a pack, as it was before it was packed; `i`: as in the index. Throws DamagedPayloadError. */
export function rowAt({ ids, groups, groupOf, ts, n, nExploration }: PackIndex, payloadOf: PayloadOf, i: number): BatchRow {
  const layout = groups[groupOf[i] ?? 0]?.layout ?? 0;
  const row = { id: ids[i] ?? 0, layout, ts: ts[i] ?? 0, n: n[i] ?? 0, n_exploration: nExploration[i] ?? 0, payload: payloadOf(i) };
  return { ...row, crc: checksumOf(row) };
}

/** The rows of the pack that are wanted, as they were before they were packed; none where its body is damaged for all its right checksum. */
export function rowsOf({ index, body }: WholePack, isWanted: (id: number) => boolean): readonly BatchRow[] {
  try {
    const payloadOf = readBody(index, body);
    return [...index.ids.keys()].flatMap((i) => (isWanted(index.ids[i] ?? 0) ? [rowAt(index, payloadOf, i)] : []));
  } catch {
    return [];
  }
}
