import { describe, expect, it } from "vitest";
import { addressOf } from "../service/page/pages.ts";
import { feedPathOf, routeOf, sinkPath, sourcePath } from "./route.ts";

const HOST = "http://127.0.0.1:8090";

describe("the routes of the console", () => {
  it.each(["press 1", "a/b", "%41", "ä?#&", "<b>", "x".repeat(200)])(
    "a source named %s is found by its own path, on both sides",
    (name) => {
      const route = routeOf(HOST + sourcePath(name));
      expect(route).toEqual({ page: "source", name, filter: "", number: 1 });
      expect(addressOf(feedPathOf(route))).toEqual({ type: "source", name, query: { filter: "", page: 1 } });
      expect(addressOf(feedPathOf(routeOf(HOST + sinkPath(name))))).toEqual({ type: "sink", name });
    },
  );

  it("keeps the filter and the page of variables", () => {
    const route = routeOf(`${HOST}/sources/a?filter=temp%26x&page=3`);
    expect(addressOf(feedPathOf(route))).toEqual({ type: "source", name: "a", query: { filter: "temp&x", page: 3 } });
    expect(routeOf(`${HOST}/sources/a?page=-1`)).toMatchObject({ number: 1 });
  });

  it("leads to the overview from everywhere else", () => {
    for (const path of ["/", "/sources/", "/none", "/?filter=x#sources"]) expect(routeOf(HOST + path)).toEqual({ page: "overview" });
  });
});
