import { describe, expect, it } from "vitest";
import { type Ending, judge, runsOf } from "./judge.ts";

const run = (tests: Record<string, Ending>) => ({ tests: new Map(Object.entries(tests)) });

describe("a test file beside the build of before", () => {
  it("proves its fault by a test that fails there and passes here", () => {
    const verdict = judge("a.test.ts", run({ fault: "failed", old: "passed" }), run({ fault: "passed", old: "passed" }));
    expect(verdict).toEqual({ file: "a.test.ts", shown: ["fault"], unchanged: ["old"], problems: [] });
  });

  it.each([
    ["passes in both", run({ fault: "passed" }), run({ fault: "passed" }), /no test fails there/],
    ["is skipped here", run({ fault: "failed" }), run({ fault: "skipped" }), /no test fails there/],
    ["fails in both", run({ fault: "failed" }), run({ fault: "failed" }), /fails here: fault/],
    ["did not run here", run({ fault: "failed" }), undefined, /did not run here/],
    ["did not run there", undefined, run({ fault: "passed" }), /no test fails there/],
    ["cannot be loaded there", { ...run({}), loadFailure: "no module" }, run({ fault: "passed" }), /cannot be loaded there: no module/],
    ["breaks another test", run({ fault: "failed", old: "passed" }), run({ fault: "passed", old: "failed" }), /fails here: old/],
  ])("proves nothing where it %s", (_, before, now, problem) => {
    expect(judge("a.test.ts", before, now).problems.join()).toMatch(problem);
  });
});

describe("a report of vitest", () => {
  const text = (file: object) => JSON.stringify({ testResults: [{ name: "/tree/a.test.ts", assertionResults: [], ...file }] });

  it("names files below the root and endings by test", () => {
    const assertionResults = [
      { fullName: "one", status: "passed" },
      { fullName: "two", status: "failed" },
      { fullName: "three", status: "pending" },
    ];
    const runs = runsOf(text({ status: "failed", assertionResults }), "/tree");
    expect(runs.get("a.test.ts")).toEqual(run({ one: "passed", two: "failed", three: "skipped" }));
  });

  it("tells a file that cannot be loaded from one whose tests fail", () => {
    const runs = runsOf(text({ status: "failed", message: "\nCannot find module x\n at y" }), "/tree");
    expect(runs.get("a.test.ts")?.loadFailure).toBe("Cannot find module x");
  });

  it("is refused where it is another text", () => expect(() => runsOf("{}", "/tree")).toThrow());
});
