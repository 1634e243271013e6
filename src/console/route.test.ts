import { describe, expect, it } from "vitest";
import { feedPathOf, routeOf } from "./route.ts";

const HOST = "http://127.0.0.1:8090";
const NAMES = ["press 1", "a/b", "%41", "ä?#&", "<b>", "x".repeat(200)];

describe("the routes of the console", () => {
  it.each(NAMES)("a source and a sink named %s are found by their own paths", (name) => {
    const route = routeOf(`${HOST}/sources/${encodeURIComponent(name)}`);
    expect(route).toEqual({ page: "source", name, filter: "", number: 1 });
    expect(routeOf(HOST + feedPathOf(route))).toEqual(route);
    expect(routeOf(HOST + feedPathOf(routeOf(`${HOST}/sinks/${encodeURIComponent(name)}`)))).toEqual({ page: "sink", name });
  });

  it("keeps the filter and the page of variables", () => {
    const route = routeOf(`${HOST}/sources/a?filter=temp%26x&page=3`);
    expect(route).toEqual({ page: "source", name: "a", filter: "temp&x", number: 3 });
    expect(feedPathOf(route)).toBe("/sources/a?filter=temp%26x&page=3");
    expect(routeOf(`${HOST}/sources/a?page=-1`)).toMatchObject({ number: 1 });
  });

  it("leads to the overview from everywhere else", () => {
    for (const path of ["/", "/sources/", "/none", "/?filter=x#sources"]) expect(routeOf(HOST + path)).toEqual({ page: "overview" });
  });
});
