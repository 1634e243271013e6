import { createContext } from "preact";
import { useContext, useEffect, useReducer, useRef } from "preact/hooks";
import type { Feed } from "./feed.ts";

export const FeedContext = createContext<Feed | undefined>(undefined);

/** The feed; the component is drawn again when something is told. */
export function useFeed(): Feed {
  const feed = useContext(FeedContext);
  if (!feed) throw new Error("there is no feed around this component");
  const [, again] = useReducer((count: number) => count + 1, 0);
  const shown = useRef(feed.version);
  shown.current = feed.version;
  useEffect(() => feed.subscribe(() => again(undefined), shown.current), [feed]);
  return feed;
}

/** The component is drawn again each second: ages grow. */
export function useSeconds(): void {
  const [, again] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const timer = setInterval(() => again(undefined), 1000);
    return () => clearInterval(timer);
  }, []);
}

/** A choice of this browser, kept over visits. */
export function readChoice(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function keepChoice(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // A browser that keeps nothing asks again with the next visit.
  }
}
