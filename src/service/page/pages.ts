import { html } from "./html.ts";
import type { SourceLook } from "./messages.ts";
import { type OverviewQuery, overview } from "./overview.ts";
import type { PageState } from "./page-state.ts";
import { lookOf, PLAN_EVERY_MS, type SourceQuery, sourcePage } from "./source-page.ts";
import { Parts, type View } from "./view.ts";

/** A page that there is, by its path and query. */
export type PageAddress =
  | { readonly type: "overview"; readonly query: OverviewQuery }
  | { readonly type: "source"; readonly name: string; readonly query: SourceQuery };

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
  const name = /^\/sources\/([^/]+)$/.exec(pathname)?.[1];
  if (name === undefined) return undefined;
  try {
    return { type: "source", name: decodeURIComponent(name), query: { filter, page } };
  } catch {
    return undefined;
  }
}

/** As `addressOf` reads it again: pages that are the same have one key. Pure. */
export const keyOfAddress = (address: PageAddress): string => JSON.stringify(address);

/** Undefined: the service has no such source. */
export function viewOf(address: PageAddress, state: PageState, nowMs: number): View | undefined {
  if (address.type === "overview") return overview(state, address.query, nowMs);
  const source = state.find(address.name);
  if (source) return sourcePage(source, state, address.query);
  return state.head
    ? undefined
    : new Parts().view(address.name, html`<h1>${address.name}</h1><p>The collector is starting; its state follows in a moment.</p>`);
}

/** What the service is asked for so that the page can be shown; undefined: nothing in detail. */
export function lookFor(address: PageAddress, state: PageState, nowMs: number): SourceLook | undefined {
  if (address.type === "overview") return undefined;
  const source = state.find(address.name);
  if (!source) return undefined;
  const look = lookOf(source.uuid, address.query);
  const detail = state.detail(look);
  return { ...look, hasPlan: detail === undefined || nowMs - detail.planAt >= PLAN_EVERY_MS };
}
