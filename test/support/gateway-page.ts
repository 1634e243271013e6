import { readFileSync } from "node:fs";
import path from "node:path";

/** One conversation of docs/gateway-protocol.md. */
export interface PageExample {
  /** Who plays it in a test. */
  readonly played: readonly string[];
  readonly lines: readonly { readonly from: "client" | "gateway"; readonly line: string }[];
}

const EXAMPLE = /<!-- played: ([a-z ]+) -->\n```\n([\s\S]*?)```/g;

/** The moment at which the page's examples are. */
export const PAGE_TIME = Date.UTC(2026, 10, 20, 9, 0, 0, 123);

/** The conversations of the page, in its order. */
export function pageExamples(): readonly PageExample[] {
  const page = readFileSync(path.resolve(import.meta.dirname, "../../docs/gateway-protocol.md"), "utf8");
  return [...page.matchAll(EXAMPLE)].map(([, played = "", text = ""]) => ({
    played: played.split(" "),
    lines: text
      .trim()
      .split("\n")
      .map((line) => ({ from: line.startsWith("> ") ? ("client" as const) : ("gateway" as const), line: line.slice(2) })),
  }));
}
