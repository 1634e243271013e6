import type { Point, Prepared } from "../../../drivers/driver.ts";
import { FaultError } from "../../model/fault.ts";
import type { DataType } from "../../model/value.ts";
import { type PackedError, packError, unpackError } from "./errors.ts";

/** A device's answer about a point, on its way to another thread; the point's place in the request names it. */
export type PackedPrepared =
  /** `type` absent: that of the point. */
  | { readonly place: number; readonly address: unknown; readonly type?: DataType }
  | { readonly place: number; readonly refusal: PackedError; readonly retryAfterMs?: number };

export function packPrepared(one: Prepared, place: number): PackedPrepared {
  if (!("refusal" in one)) return { place, address: one.address, ...(one.type !== one.point.type && { type: one.type }) };
  const { refusal, retryAfterMs } = one;
  return { place, refusal: packError(refusal), ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

export function unpackPrepared(packed: PackedPrepared, point: Point): Prepared {
  if (!("refusal" in packed)) return { point, address: packed.address, type: packed.type ?? point.type };
  const refusal = unpackError(packed.refusal);
  const { retryAfterMs } = packed;
  return {
    point,
    refusal: refusal instanceof FaultError ? refusal : new FaultError("device_error", refusal.message, { cause: refusal }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}
