import type { Cells } from "../configuration/variable-file.ts";

interface Line {
  readonly rawLow: number;
  readonly rawHigh: number;
  readonly low: number;
  readonly high: number;
  readonly isNegated?: boolean;
}

/** A line through two points, as factor and offset; undefined: it is not a line. Pure. */
export function lineThrough({ rawLow, rawHigh, low, high, isNegated = false }: Line): Pick<Cells, "factor" | "offset"> | undefined {
  const factor = (high - low) / (rawHigh - rawLow);
  if (!Number.isFinite(factor) || factor === 0) return undefined;
  const sign = isNegated ? -1 : 1;
  return { factor: decimal(sign * factor), offset: decimal(sign * (low - rawLow * factor)) };
}

/** Without the last digits of a division: 0.1, and not 0.10000000000000002. */
const decimal = (value: number): string => String(Number(value.toPrecision(12)));
