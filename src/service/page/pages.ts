import { html } from "./html.ts";
import type { SourceLook } from "./messages.ts";
import { type OverviewQuery, overviewPage, STARTING } from "./overview.ts";
import type { PageState } from "./page-state.ts";
import { overviewParts, sinkParts, sourceParts } from "./parts.ts";
import type { Page } from "./shell.ts";
import { sinkPage } from "./sink-page.ts";
import { lookOf, PLAN_EVERY_MS, type SourceQuery, sourcePage } from "./source-page.ts";
import { toldSink } from "./tell.ts";
import type { ToldLogEvent } from "./told.ts";
import type { View } from "./view.ts";

/** A page that there is, by its path and query. */
export type PageAddress =
  | { readonly type: "overview"; readonly query: OverviewQuery }
  | { readonly type: "source"; readonly name: string; readonly query: SourceQuery }
  | { readonly type: "sink"; readonly name: string }
  | { readonly type: "log" };

const MAX_FILTER = 100;
const MAX_PAGE = 10_000;

/** The page that a path means, as the browser asks for it; undefined: there is none. Pure. */
export function addressOf(path: string): PageAddress | undefined {
  const url = URL.canParse(path, "http://localhost") ? new URL(path, "http://localhost") : undefined;
  if (!url) return undefined;
  const { pathname, searchParams } = url;
  const filter = (searchParams.get("filter") ?? "").slice(0, MAX_FILTER);
  const given = Number(searchParams.get("page") ?? 1);
  const page = Number.isInteger(given) && given >= 1 && given <= MAX_PAGE ? given : 1;
  if (pathname === "/") return { type: "overview", query: { failing: searchParams.get("show") === "failing", filter, page } };
  if (pathname === "/log") return { type: "log" };
  const [, room, name] = /^\/(sources|sinks)\/([^/]+)$/.exec(pathname) ?? [];
  if (name === undefined) return undefined;
  try {
    const decoded = decodeURIComponent(name);
    return room === "sinks" ? { type: "sink", name: decoded } : { type: "source", name: decoded, query: { filter, page } };
  } catch {
    return undefined;
  }
}

/** As `addressOf` reads it again: pages that are the same have one key. Pure. */
export const keyOfAddress = (address: PageAddress): string => JSON.stringify(address);

/** A page of the console; undefined: the service has no such source. */
export function viewOf(address: PageAddress, state: PageState, nowMs: number): View | undefined {
  if (address.type === "overview" || address.type === "log" || !state.head) return overviewParts(state, nowMs);
  if (address.type === "sink") {
    const sink = state.findSink(address.name);
    return sink && sinkParts(sink, state, nowMs);
  }
  const source = state.find(address.name);
  if (source) return sourceParts(source, state, state.detail(lookOf(source.uuid, address.query)), nowMs);
  return undefined;
}

/** The page without scripts; undefined: the service has no such source. `events`: about the source of the page, the newest first. */
export function pageOf(address: PageAddress, state: PageState, nowMs: number, events: readonly ToldLogEvent[] = []): Page | undefined {
  if (address.type === "overview") return overviewPage(state, address.query, nowMs);
  if (address.type === "log")
    return {
      title: "Events: Collector",
      main: html`<h1>Events</h1><p>The list of events needs scripts; <code>journalctl -u collector</code> has them too.</p>`,
    };
  if (!state.head) return { title: address.name, main: html`<h1>${address.name}</h1><p>${STARTING}</p>` };
  if (address.type === "sink") {
    const sink = state.findSink(address.name);
    return sink && sinkPage(toldSink(sink, state));
  }
  const source = state.find(address.name);
  return source && sourcePage(source, state, address.query, events);
}

/** The look that a page needs of the service; undefined: none in detail. `nowMs`: monotonic. */
export function lookFor(address: PageAddress, state: PageState, nowMs: number): SourceLook | undefined {
  const source = address.type === "source" ? state.find(address.name) : undefined;
  if (!source || address.type !== "source") return undefined;
  const look = lookOf(source.uuid, address.query);
  const detail = state.detail(look);
  return { ...look, hasPlan: detail === undefined || nowMs - detail.planAt >= PLAN_EVERY_MS };
}
