import { expect, it } from "vitest";
import { addressOf } from "./pages.ts";

it("finds the page that a path of the console means", () => {
  expect(addressOf("/?filter=x&show=failing&page=2")).toEqual({ type: "overview", query: { failing: true, filter: "x", page: 2 } });
  expect(addressOf("/sources/a?filter=temp%26x&page=3")).toEqual({ type: "source", name: "a", query: { filter: "temp&x", page: 3 } });
  expect(addressOf("/sinks/a%2Fb")).toEqual({ type: "sink", name: "a/b" });
  expect(addressOf("/log")).toEqual({ type: "log" });
  for (const path of ["/none", "/sources/", "/sources/a/b", "/sources/%E0%A4%A"]) expect(addressOf(path)).toBeUndefined();
});
