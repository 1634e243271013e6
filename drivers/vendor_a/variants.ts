import type { Steps } from "../../src/base/timer.ts";
import type { Point } from "../driver.ts";
import type { CipAddress } from "./address.ts";
import type { VariableRead } from "./omron/plan.ts";
import type { FileAddress } from "./pccc/address.ts";
import type { FileRead } from "./pccc/plan.ts";
import type { CipLimits, CipRead } from "./plan.ts";

/** Tags of a Logix or Micro800 controller, and elements of data files: a Logix controller may have both. */
export type AnyAddress = CipAddress | FileAddress;
export type AnyRead = CipRead | FileRead | VariableRead;

export interface VendorALimits extends CipLimits {
  /** Data bytes of one answer from a data file. */
  readonly fileBytes: number;
}

export const isFileAddress = (address: AnyAddress): address is FileAddress => "letter" in address;
export const isFileRead = (request: AnyRead): request is FileRead => "item" in request;

/** Points by what they are read from. */
export interface Variants {
  readonly tags: readonly Point<CipAddress>[];
  readonly files: readonly Point<FileAddress>[];
}

/** Points in one step. */
const AT_ONCE = 1000;

/** In the order in which they come, in steps. */
export function* byVariantSteps(points: readonly Point<AnyAddress>[]): Steps<Variants> {
  const tags: Point<CipAddress>[] = [];
  const files: Point<FileAddress>[] = [];
  for (const [i, point] of points.entries()) {
    if (i > 0 && i % AT_ONCE === 0) yield;
    if (isFilePoint(point)) files.push(point);
    else if (isTagPoint(point)) tags.push(point);
  }
  return { tags, files };
}

const isFilePoint = (point: Point<AnyAddress>): point is Point<FileAddress> => isFileAddress(point.address);
const isTagPoint = (point: Point<AnyAddress>): point is Point<CipAddress> => !isFileAddress(point.address);
