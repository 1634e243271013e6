import { expect, it } from "vitest";
import { AskedPolicy } from "./asked-policy.ts";

function asked() {
  const closed = new Set<string>();
  const judge = (what: string) => (closed.has(what) ? `${what} is closed` : undefined);
  return { closed, policy: new AskedPolicy({ permit: judge, listenRefusal: judge }) };
}

it("a change concerns an opening that asked for what has another answer now, and no other", () => {
  const { closed, policy } = asked();
  closed.add("10.0.0.2");
  expect(policy.context.permit?.("10.0.0.1", 1883)).toBeUndefined();
  expect(policy.context.permit?.("10.0.0.2", 1883)).toBe("10.0.0.2 is closed");
  expect(policy.change()).toBeUndefined();
  closed.add("10.0.0.3");
  expect(policy.change()).toBeUndefined();
  closed.add("10.0.0.1");
  expect(policy.change()).toEqual({ refusal: "10.0.0.1 is closed" });
  closed.delete("10.0.0.1");
  closed.delete("10.0.0.2");
  expect(policy.change()).toEqual({ refusal: undefined });
});

it("also where it asked to listen", () => {
  const { closed, policy } = asked();
  policy.context.listenRefusal?.("0.0.0.0:4840");
  closed.add("0.0.0.0:4840");
  expect(policy.change()).toEqual({ refusal: "0.0.0.0:4840 is closed" });
});

it("without a policy there is none", () => {
  expect(new AskedPolicy({}).context).toEqual({});
});
