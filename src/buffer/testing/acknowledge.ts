import type { Position } from "../buffer.ts";
import { joinClosest, rangesOf, subtract } from "../position.ts";

/** The position without `ids` (in any order, also twice, also such as are not pending), as the file keeps it. */
export const acknowledge = (position: Position, ids: readonly number[]): Position =>
  joinClosest(subtract(position, rangesOf(ids))).position;
