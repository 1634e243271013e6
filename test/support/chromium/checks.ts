import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Visit } from "./visit.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Conformance to WCAG 2.2 AA, and what makes pages usable beyond it: order of headings, landmarks. */
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** Steps after which a page is taken for one that the keyboard does not leave. */
const MOST_STEPS = 500;

/**
 * What keeps people from using the page as it looks now, each as `rule: element: what is wrong`: contrast, names of controls, order of
 * headings, landmarks, tables, sizes of targets. A contrast that cannot be computed counts as one that is too low, but for signs without words.
 */
export async function barriersOf({ page }: Visit): Promise<readonly string[]> {
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(AXE);
  const options = { runOnly: { type: "tag", values: RULES }, resultTypes: ["violations", "incomplete"] };
  const { violations, incomplete } = await page.evaluate<AxeResults>(`axe.run(document, ${JSON.stringify(options)})`);
  const unclear = incomplete
    .filter(({ id }) => id === "color-contrast")
    .map((result) => ({ ...result, nodes: result.nodes.filter(({ any }) => any.some(({ data }) => data?.messageKey !== "nonBmp")) }));
  return [...violations, ...unclear].flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary = "" }) => `${id}: ${target.join(" ")}: ${failureSummary.replace(/\s+/g, " ")}`),
  );
}

/** Elements that reach beyond the right edge of the window without a scrolling region of their own around them, and the body that scrolls. */
export function overflowsOf({ page }: Visit): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(`(() => {
    const root = document.documentElement;
    const scrolls = (element) => element && element !== document.body && element !== root
      && (["auto", "scroll"].includes(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
    const isHidden = (element) => getComputedStyle(element).clip !== "auto" || getComputedStyle(element).clipPath !== "none";
    const wide = [...document.body.querySelectorAll("*")].filter((element) =>
      element.getBoundingClientRect().right > root.clientWidth + 1 && element.checkVisibility() && !isHidden(element) && !scrolls(element));
    const body = root.scrollWidth > root.clientWidth ? ["the page is " + root.scrollWidth + " px wide in a window of " + root.clientWidth] : [];
    return [...body, ...wide.map((element) => element.tagName.toLowerCase() + ": " + element.textContent.trim().slice(0, 40))];
  })()`);
}

/** The place where the keyboard is. */
export interface FocusStop {
  readonly tag: string;
  /** What can be read on it. */
  readonly text: string;
  readonly href: string | null;
  /** The person sees where the keyboard is: an outline or a shadow, inside the window. */
  readonly isVisible: boolean;
}

const FOCUSED = `(() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
  const { top, bottom, width, height } = element.getBoundingClientRect();
  const isMarked = element.matches(":focus-visible") && ((outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none");
  return {
    tag: element.tagName.toLowerCase(),
    text: (element.getAttribute("aria-label") ?? element.innerText ?? "").replace(/\\s+/g, " ").trim(),
    href: element.getAttribute("href"),
    isVisible: isMarked && width > 0 && height > 0 && bottom > 0 && top < innerHeight,
  };
})()`;

/** Presses Tab until it is on what is meant, at most once around the page; the stops on the way, the last one included. Throws where it is on none. */
export async function tabTo(visit: Visit, isMeant: (stop: FocusStop) => boolean): Promise<readonly FocusStop[]> {
  const stops: FocusStop[] = [];
  while (stops.length < MOST_STEPS) {
    await visit.press("Tab");
    const stop = await visit.page.evaluate<FocusStop | null>(FOCUSED);
    if (stop === null) break;
    stops.push(stop);
    if (isMeant(stop)) return stops;
  }
  throw new Error(`Tab never comes to it:\n${stops.map(({ tag, text }) => `${tag} ${text}`).join("\n")}`);
}
