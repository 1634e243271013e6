import { useEffect, useState } from "preact/hooks";

/** A page of the console, by the path in the browser's address. */
export type Route =
  | { readonly page: "overview" }
  | { readonly page: "source"; readonly name: string; readonly filter: string; readonly number: number }
  | { readonly page: "sink"; readonly name: string }
  | { readonly page: "log" };

/** Pure. */
export function routeOf(href: string): Route {
  const { pathname, searchParams } = new URL(href);
  const [, room, name = ""] = pathname.split("/");
  if (room === "sources" && name !== "") {
    const number = Number(searchParams.get("page") ?? 1);
    return { page: "source", name: decoded(name), filter: searchParams.get("filter") ?? "", number: number >= 1 ? number : 1 };
  }
  if (room === "sinks" && name !== "") return { page: "sink", name: decoded(name) };
  return room === "log" ? { page: "log" } : { page: "overview" };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The path whose changes the collector sends for this page. */
export const feedPathOf = (route: Route): string => {
  if (route.page === "overview" || route.page === "log") return "/";
  if (route.page === "sink") return `/sinks/${encodeURIComponent(route.name)}`;
  return variablesPath(`/sources/${encodeURIComponent(route.name)}`, route.filter, route.number);
};

/** A source's page with some of its variables; `path`: see `ToldSource.path`. Pure. */
export const variablesPath = (path: string, filter: string, number: number): string =>
  `${path}?${new URLSearchParams({ ...(filter !== "" && { filter }), page: String(number) }).toString()}`;

export function go(path: string, isReplaced = false): void {
  if (isReplaced) history.replaceState(null, "", path);
  else history.pushState(null, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
  if (!isReplaced && !path.includes("#")) scrollTo(0, 0);
}

/** The route of now; links of this page lead to it without loading the page again. */
export function useRoute(): Route {
  const [href, setHref] = useState(location.href);
  useEffect(() => {
    const onMove = (): void => setHref(location.href);
    const onClick = (event: MouseEvent): void => {
      const link = event.target instanceof Element ? event.target.closest("a") : null;
      if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      if (link.origin !== location.origin || link.target !== "" || link.hasAttribute("download") || link.pathname.startsWith("/data/"))
        return;
      if (link.hash !== "" && link.pathname === location.pathname) return;
      event.preventDefault();
      go(link.pathname + link.search + link.hash);
    };
    addEventListener("popstate", onMove);
    document.addEventListener("click", onClick);
    return () => {
      removeEventListener("popstate", onMove);
      document.removeEventListener("click", onClick);
    };
  }, []);
  return routeOf(href);
}
