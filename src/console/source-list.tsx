import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatDuration } from "../base/duration.ts";
import type { ToldSample, ToldSource } from "../service/page/told.ts";
import { Sparkline } from "./line.tsx";
import { go } from "./route.ts";
import { type SortKey, selected } from "./selection.ts";
import { useFeed } from "./state.ts";
import { Age, Badge, stateWords } from "./words.tsx";

/** Heights of a row in CSS pixels, as console.css has them: one line on a desktop, three on a phone. */
const ROW = 40;
const PHONE_ROW = 88;
const PHONE = "(max-width: 48rem)";
/** Rows that are drawn above and below the window. */
const BEYOND = 8;
/** A list of this length is drawn whole. */
const ALWAYS = 50;

const COLUMNS: readonly { readonly key: SortKey; readonly label: string }[] = [
  { key: "name", label: "Source" },
  { key: "state", label: "State" },
  { key: "since", label: "Since" },
  { key: "type", label: "Type and address" },
];

/** All data sources, of which those in the window are drawn. */
export function SourceList({ noSources }: { readonly noSources: string }): JSX.Element {
  const feed = useFeed();
  const query = new URLSearchParams(location.search);
  const filter = query.get("filter") ?? "";
  const isFailing = query.get("show") === "failing";
  const [sort, setSort] = useState<{ readonly key: SortKey | null; readonly isDown: boolean }>({ key: null, isDown: false });
  const order = feed.part("sources") ?? [];
  const sources = order.flatMap((uuid) => feed.piece<ToldSource>(`s-${uuid}`) ?? []);
  const shown = useMemo(() => selected(sources, { filter, isFailing, ...sort }), [feed.version, filter, isFailing, sort]);
  const choose = (next: { readonly filter?: string; readonly isFailing?: boolean }): void => {
    const { filter: text, isFailing: failing } = { filter, isFailing, ...next };
    const parameters = new URLSearchParams({ ...(text !== "" && { filter: text }), ...(failing && { show: "failing" }) });
    go(`/${parameters.size > 0 ? `?${parameters.toString()}` : ""}`, true);
  };
  return (
    <section id="sources" aria-labelledby="sources-title">
      <div class="list-head">
        <h2 id="sources-title">Data sources</h2>
        <input
          type="search"
          id="filter"
          aria-label="Filter by name, type or address"
          placeholder="Name, type or address"
          value={filter}
          onInput={(event) => choose({ filter: event.currentTarget.value })}
        />
        <label class="check">
          <input type="checkbox" name="show" checked={isFailing} onChange={(event) => choose({ isFailing: event.currentTarget.checked })} />{" "}
          Only those in trouble
        </label>
        <span class="faint" role="status">
          {shown.length === sources.length ? sources.length : `${shown.length} of ${sources.length}`}
        </span>
      </div>
      {shown.length === 0 ? (
        <p>{sources.length === 0 ? noSources : "No data source fits."}</p>
      ) : (
        <Rows sources={shown} sort={sort} setSort={(key) => setSort({ key, isDown: sort.key === key && !sort.isDown })} />
      )}
    </section>
  );
}

interface RowsProps {
  readonly sources: readonly ToldSource[];
  readonly sort: { readonly key: SortKey | null; readonly isDown: boolean };
  readonly setSort: (key: SortKey) => void;
}

function Rows({ sources, sort, setSort }: RowsProps): JSX.Element {
  const body = useRef<HTMLDivElement>(null);
  const [window, setWindow] = useState({ from: 0, to: 60, row: ROW });
  useEffect(() => {
    const look = (): void => {
      const row = matchMedia(PHONE).matches ? PHONE_ROW : ROW;
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const from = Math.max(0, Math.floor(-top / row) - BEYOND);
      const to = Math.max(0, Math.ceil((innerHeight - top) / row) + BEYOND);
      setWindow((known) => (known.from === from && known.to === to && known.row === row ? known : { from, to, row }));
    };
    look();
    // The list moves where the parts above it grow and shrink.
    const grown = new ResizeObserver(look);
    grown.observe(document.body);
    const options = { passive: true } as const;
    addEventListener("scroll", look, options);
    addEventListener("resize", look, options);
    return () => {
      grown.disconnect();
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [sources.length]);
  const isWhole = sources.length <= ALWAYS;
  const from = isWhole ? 0 : Math.min(window.from, Math.max(0, sources.length - 1));
  const to = isWhole ? sources.length : window.to;
  return (
    <div class="list" role="table" aria-label="Data sources with their states" aria-rowcount={sources.length + 1}>
      <div role="rowgroup">
        <div class="row row-head" role="row" aria-rowindex={1}>
          {COLUMNS.map(({ key, label }) => (
            <div key={key} role="columnheader" aria-sort={sort.key === key ? (sort.isDown ? "descending" : "ascending") : "none"}>
              <button type="button" class="sort" onClick={() => setSort(key)}>
                {label}
                <span aria-hidden="true">{sort.key === key ? (sort.isDown ? " ▾" : " ▴") : ""}</span>
              </button>
            </div>
          ))}
          <div role="columnheader">Last value</div>
        </div>
      </div>
      <div role="rowgroup" ref={body} class="rows" style={{ height: `${sources.length * window.row}px` }}>
        {sources.slice(from, to).map((source, i) => (
          <Row key={source.uuid} source={source} place={from + i} top={(from + i) * window.row} />
        ))}
      </div>
    </div>
  );
}

interface RowProps {
  readonly source: ToldSource;
  readonly place: number;
  readonly top: number;
}

function Row({ source, place, top }: RowProps): JSX.Element {
  const feed = useFeed();
  const { uuid, name, path, type, endpoint, intervalMs, level, since } = source;
  const sample = feed.piece<ToldSample | null>(`v-${uuid}`);
  const address = `${type} ${endpoint ?? ""}${intervalMs > 0 ? `, every ${formatDuration(intervalMs)}` : ""}`;
  return (
    <div class={`row ${level}`} role="row" aria-rowindex={place + 2} data-source={name} style={{ top: `${top}px` }}>
      <div role="cell" class="cell-name">
        <a href={path} class="cut" title={name}>
          {name}
        </a>
      </div>
      <div role="cell" class="cell-state">
        <Badge level={level} words={stateWords(source)} />
      </div>
      <div role="cell" class="cell-since faint">
        <Age iso={since} />
      </div>
      <div role="cell" class="cell-address faint cut" title={address}>
        {address}
      </div>
      <div role="cell" class="cell-value">
        {sample && <Sample sample={sample} />}
        <Sparkline line={feed.line(`v-${uuid}`)} />
      </div>
    </div>
  );
}

function Sample({ sample: [variable, unit, value] }: { readonly sample: ToldSample }): JSX.Element {
  const words = `${value ?? "bad"}${value !== null && unit !== null ? ` ${unit}` : ""}`;
  return (
    <span class="cut" title={`${variable}: ${words}`}>
      <span class="faint">{variable}</span> <b>{words}</b>
    </span>
  );
}
