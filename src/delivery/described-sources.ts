import type { Layout } from "../model/layout.ts";
import type { SourceReport } from "../model/report.ts";
import type { DescribedSource, ToDelivery } from "./messages.ts";

/** The sources with their layouts, put together from the messages in which they come. */
export class DescribedSources {
  /** Undefined: not described yet. */
  #sources: readonly SourceReport[] | undefined;
  #layouts: ReadonlyMap<string, Layout | null> = new Map();
  /** Layouts that come in pieces, by source. */
  readonly #pieces = new Map<string, Layout>();

  all(): readonly SourceReport[] | undefined {
    return this.#sources;
  }

  /** Appends a piece to the layout; one whose beginning went to the worker before this one is ignored. */
  addPiece({ source, from, variables }: Extract<ToDelivery, { type: "layout" }>): void {
    const before = from === 0 ? [] : this.#pieces.get(source.uuid)?.variables;
    if (before?.length === from) this.#pieces.set(source.uuid, { source, variables: [...before, ...variables] });
  }

  /** Takes the sources as they are now; one that comes without a layout keeps its last. True: layouts may have changed. */
  describe(sources: readonly DescribedSource[]): boolean {
    const layoutOf = ({ uuid, layout }: DescribedSource): Layout | null =>
      layout === undefined ? (this.#pieces.get(uuid) ?? this.#layouts.get(uuid) ?? null) : layout;
    this.#sources = sources.map((source) => ({ ...source, layout: layoutOf(source) }));
    this.#layouts = new Map(this.#sources.map(({ uuid, layout }) => [uuid, layout]));
    const mayHaveChanged = this.#pieces.size > 0 || sources.some(({ layout }) => layout);
    this.#pieces.clear();
    return mayHaveChanged;
  }

  /** The source's own object for an equal layout, since a layout is as large as the configuration; else the layout itself. */
  shared(layout: Layout): Layout {
    const described = this.#layouts.get(layout.source.uuid);
    return described && described !== layout && JSON.stringify(described) === JSON.stringify(layout) ? described : layout;
  }
}
