import type { Visit } from "./visit.ts";

/** Distances of console.css in CSS pixels: its tokens --space-N, and zero. A border of one to four pixels is no distance. */
const SCALE = [0, 4, 8, 12, 16, 24, 32];

/** A longer word, such as a thumbprint, may be on two lines. */
const LONGEST_WORD = 30;

/**
 * Flaws in how a page is laid out now, each as `kind: element`: text that is cut without an ellipsis and a title, a word broken inside a cell,
 * boxes over each other, distances that are none of the scale. Sideways scrolling is `overflowsOf`.
 */
export function layoutFlawsOf({ page }: Visit): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(`(() => {
    const scale = ${JSON.stringify(SCALE)};
    const longest = ${LONGEST_WORD};
    const flaws = [];
    const nameOf = (element) => element.tagName.toLowerCase() + (element.className ? "." + String(element.className).replaceAll(" ", ".") : "")
      + " " + element.textContent.trim().slice(0, 40);
    const shown = [...document.querySelectorAll("body *")].filter((element) => element.checkVisibility()
      && !element.closest("svg, .hidden, .skip, option") && element.getBoundingClientRect().width > 0);
    const ownText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "");
    for (const element of shown) {
      const style = getComputedStyle(element);
      const isCut = element.scrollWidth > element.clientWidth + 1 && style.overflowX === "hidden" && style.display !== "inline";
      if (isCut && !(style.textOverflow === "ellipsis" && element.closest("[title]"))) flaws.push("cut: " + nameOf(element));
      if (element.scrollHeight > element.clientHeight + 2 && style.overflowY === "hidden" && ownText(element)) flaws.push("cut below: " + nameOf(element));
      for (const property of ["paddingTop", "paddingRight", "paddingBottom", "paddingLeft", "marginTop", "marginBottom", "rowGap", "columnGap"]) {
        const value = parseFloat(style[property]);
        if (!Number.isNaN(value) && !scale.includes(Math.abs(value)) && !["INPUT", "METER"].includes(element.tagName))
          flaws.push("distance " + property + " " + style[property] + ": " + nameOf(element));
      }
    }
    // A word in a cell on two lines: its range has two boxes.
    for (const cell of document.querySelectorAll("td, th, [role=cell], dd.figure, .state")) {
      if (!cell.checkVisibility()) continue;
      const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode())
        for (const { index, 0: word } of node.data.matchAll(/\\w+/g)) {
          if (word.length < 2 || word.length > longest) continue;
          const range = document.createRange();
          range.setStart(node, index);
          range.setEnd(node, index + word.length);
          const tops = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
          if (tops.size > 1) flaws.push("broken word " + word + ": " + nameOf(cell));
        }
    }
    // Boxes that are siblings and both hold something.
    const boxes = [...document.querySelectorAll(".tile, .card, .rows > .row, .row > *, section, .facts > *, .list-head > *, .bar > *")].filter((box) => box.checkVisibility());
    for (const parent of new Set(boxes.map((box) => box.parentElement))) {
      const inside = boxes.filter((box) => box.parentElement === parent).map((box) => [box, box.getBoundingClientRect()]);
      for (const [i, [box, one]] of inside.entries())
        for (const [other, two] of inside.slice(i + 1, i + 8))
          if (one.left < two.right - 1 && two.left < one.right - 1 && one.top < two.bottom - 1 && two.top < one.bottom - 1)
            flaws.push("over each other: " + nameOf(box) + " and " + nameOf(other));
    }
    return [...new Set(flaws)].slice(0, 20);
  })()`);
}
