import type { Discovered, Point, Prepared } from "../../../drivers/driver.ts";
import { eachOf, Pager } from "../../lib/thread/pager.ts";
import type { FromSessionWorker, PageContent } from "./messages.ts";
import { packPrepared } from "./prepared.ts";

type Page = Extract<FromSessionWorker, { type: "page" }>;

/** An answer that comes page by page. */
export interface Stream {
  readonly session: number;
  /** The next page. Throws what the driver throws. */
  page(call: number): Promise<Page>;
  /** Nobody wants more of it. Never throws. */
  end(): Promise<void>;
}

export function streamOfPrepared(
  session: number,
  points: readonly Point[],
  batches: AsyncIterable<readonly Prepared[]>,
  signal: AbortSignal,
): Stream {
  const places = new Map(points.map((point, place) => [point, place]));
  return streamOf(session, eachOf(batches, signal), (items) => ({
    // What nobody asked for has no place.
    prepared: items.flatMap((one) => {
      const place = places.get(one.point);
      return place === undefined ? [] : [packPrepared(one, place)];
    }),
  }));
}

export const streamOfDiscovered = (session: number, found: AsyncIterable<Discovered>): Stream =>
  streamOf(session, found, (discovered) => ({ discovered }));

function streamOf<T>(session: number, found: AsyncIterable<T>, contentOf: (items: readonly T[]) => PageContent): Stream {
  const pager = new Pager(found);
  return {
    session,
    async page(call) {
      const { items, isLast } = await pager.take();
      return { type: "page", call, isLast, ...contentOf(items) };
    },
    end: () => pager.end(),
  };
}
