import { expect, it } from "vitest";
import { uuidOf } from "../page/testing.ts";
import { pageData } from "./page-data.ts";

const unused = (): never => {
  throw new Error("not asked for");
};

it("explains eight variables at once, then one a second: each costs a device one more read", () => {
  const explained: string[] = [];
  const inspect = (_: string, { explain = "" }: { readonly explain?: string | undefined }) => {
    explained.push(explain);
    return { report: unused, plan: null, readout: null, explained: null };
  };
  const { reply } = pageData({
    history: {} as never,
    agent: { frames: unused, inspect: inspect as never },
    sinks: unused,
    certificates: unused,
  });
  const found = Array.from({ length: 1000 }, (_, n) => reply({ type: "explain", source: uuidOf(1), variable: `v${n}` }));
  expect(found.filter((one) => one.type === "explain" && one.found === "none")).toHaveLength(8);
  expect(found.at(-1)).toEqual({ type: "explain", found: "busy" });
  expect(explained).toHaveLength(8);
});
