import { expect, test } from "vitest";
import { atOnce } from "../base/timer.ts";
import type { Layout } from "../model/layout.ts";
import type { Reading } from "../model/value.ts";
import { hasOrders, OddValues } from "./odd-values.ts";

const layout = { variables: ["level", "flow", "on"].map((name) => ({ name })) } as unknown as Layout;
const good = (value: number | boolean): Reading => ({ quality: "good", value });

function rig(source = "tank-1") {
  const odd = new OddValues(source);
  let nowMs = 0;
  return (values: readonly (number | boolean | undefined)[], passMs = 5000): string | undefined => {
    nowMs += passMs;
    const readings = values.map((value) => (value === undefined ? undefined : good(value)));
    atOnce(odd.watch(layout, readings, nowMs));
    return odd.warning?.text;
  };
}

test("a float that is no quantity is named at the second look, with the command that shows every order, until it is one", () => {
  const read = rig();
  expect(read([2.4e-41, 1, true])).toBeUndefined();
  expect(read([2.4e-41, 1, true], 1000)).toBeUndefined();
  expect(read([2.4e-41, 1, true])).toBe(
    "level: 2.40e-41 is not a value of a sensor; the byte order is wrong, mostly: `collector explain tank-1 level` shows it in each order",
  );
  expect(read([2.4e-41, -7e33, true])).toContain("(and 1 more variables)");
  expect(read([42.5, 1, true])).toBeUndefined();
});

test("zero, infinity, what is no number, small and large quantities, and a value that is odd once are not named", () => {
  const read = rig("tank 1");
  for (const value of [0, -0, Number.POSITIVE_INFINITY, Number.NaN, 6.6e-27, 1e24, true, undefined])
    for (let i = 0; i < 3; i++) expect(read([value]), String(value)).toBeUndefined();
  expect([read([1e-40]), read([1]), read([1e-40]), read([undefined, 1e-40])]).toEqual([undefined, undefined, undefined, undefined]);
  expect(read([undefined, 1e-40])).toContain("`collector explain 'tank 1' flow`");
});

test("only a protocol whose devices have several orders of bytes has a wrong one", () => {
  const point = (scalar: "float32" | "int16") => ({ index: 0, address: "a", type: { scalar } });
  const orders = [{ order: "CDAB", isConfigured: false, address: "b" }];
  const knowing = (known: typeof orders) => ({
    wireOf: () => ({ bytes: { address: "a", type: { scalar: "uint8" as const } }, orders: known }),
  });
  expect(hasOrders(knowing(orders), point("float32"))).toBe(true);
  expect(hasOrders(knowing([]), point("float32"))).toBe(false);
  expect(hasOrders({}, point("float32"))).toBe(false);
});
