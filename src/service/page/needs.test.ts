import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { reported } from "../../model/testing/warnings.ts";
import { needsOf } from "./needs.ts";
import { toldSource } from "./tell.ts";
import { failing, reportOf } from "./testing.ts";
import { MAX_NAMES } from "./told.ts";

const told = (n: number, changes = {}) => toldSource(reportOf(n, changes), `/sources/press-${n}`);

describe("needsOf", () => {
  it("folds sources that fail for one cause, with the step of the first and the time of the longest", () => {
    const early = "2026-11-19T09:00:00.000Z";
    const down = Array.from({ length: 30 }, (_, n) => told(n, failing("connect ECONNREFUSED")));
    const longest = {
      ...failing("connect ECONNREFUSED"),
      status: {
        last_readout_at: null,
        configured_variables: 1,
        state: { type: "ERROR", reason: { type: "CONNECTION_REFUSED" }, error_at: early },
      },
    };
    const [need, ...others] = needsOf([...down, told(30, longest)], []);
    expect(others).toEqual([]);
    expect(need).toMatchObject({ title: "CONNECTION_REFUSED", count: 31, level: "bad", since: early });
    expect(need?.names).toHaveLength(MAX_NAMES);
    expect(need?.step).toContain("collector probe press-0");
  });

  it("keeps different causes apart, the failing ones first", () => {
    const faulted = { faults: [{ variable: "a", fault: "not_found", detail: null }] };
    const titles = needsOf([told(1), told(2, faulted), told(3, { warnings: [reported("slow")] }), told(4, failing("x"))], []).map(
      ({ title, names }) => `${title}: ${names.map(({ name }) => name)}`,
    );
    expect(titles).toEqual(["CONNECTION_REFUSED: press-4", "Bad variables: not_found: press-2", "Worth knowing: press-3"]);
  });

  it("names each source in trouble exactly as often as it has a trouble, whatever is folded (property)", () => {
    const kinds = [{}, failing("x"), { faults: [{ variable: "a", fault: "not_found", detail: null }] }, { warnings: [reported("slow 3")] }];
    fc.assert(
      fc.property(fc.array(fc.nat(3), { maxLength: 40 }), (list) => {
        const needs = needsOf(
          list.map((kind, n) => told(n, kinds[kind])),
          [],
        );
        expect(needs.reduce((sum, { count }) => sum + count, 0)).toBe(list.filter((kind) => kind > 0).length);
      }),
    );
  });
});
