import { DRIVERS } from "../../../drivers/index.ts";
import { nearest } from "../../base/nearest.ts";
import { DETAILS_TYPES, type DetailsType } from "../../model/details.ts";
import { SINK_TYPES, type SinkType } from "../../model/sink-details.ts";
import { UsageError } from "../io.ts";

const bare = (word: string): string => word.toLowerCase().replace(/[^a-z0-9]/g, "");

/** Types that a word of the trade may stand for, the likelier first; none where it is no such word. Pure. */
export const tradeTypes = (word: string): readonly DetailsType[] =>
  Object.values(DRIVERS).flatMap(({ type, tradeWords }) => (tradeWords.includes(bare(word)) ? [type] : []));

const hasDriver = (type: string): boolean => Object.hasOwn(DRIVERS, type);

/** What is said of a type that the API knows and this collector cannot read; undefined: it can. */
export const noDriverNote = (type: string): string | undefined =>
  hasDriver(type)
    ? undefined
    : `this collector has no driver for ${type} yet: the data source is stored, its status says so, and nothing is read; drivers: ${Object.keys(DRIVERS).join(", ")}`;

/** The type that is meant. Throws UsageError with those there are. */
export function detailsTypeOf(type: string): DetailsType {
  const found = DETAILS_TYPES.find((one) => one === type);
  if (found !== undefined) return found;
  if (SINK_TYPES.some((one) => one === type))
    throw new UsageError(`${type} is a type of data sink: type collector sink add NAME ${type} key=value…`);
  const readable = DETAILS_TYPES.filter(hasDriver);
  const others = DETAILS_TYPES.filter((one) => !hasDriver(one));
  throw new UsageError(
    `${type} is not a type of data source${meantWords(type, DETAILS_TYPES)}; there are: ${readable.join(", ")}${others.length === 0 ? "" : ` (stored, but without a driver here: ${others.join(", ")})`}`,
  );
}

/** See detailsTypeOf. */
export function sinkTypeOf(type: string): SinkType {
  const found = SINK_TYPES.find((one) => one === type);
  if (found !== undefined) return found;
  throw new UsageError(`${type} is not a type of data sink${meantWords(type, SINK_TYPES)}; there are: ${SINK_TYPES.join(", ")}`);
}

/** `; did you mean X?`, or nothing. Pure. */
export function meantWords(word: string, known: readonly string[]): string {
  const trade = tradeTypes(word).filter((type) => known.includes(type));
  const close = nearest(word, known);
  const meant = trade.length > 0 ? trade : close === undefined ? [] : [close];
  return meant.length === 0 ? "" : `; did you mean ${meant.join(" or ")}?`;
}
