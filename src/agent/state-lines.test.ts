import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { silentLog } from "../model/context.ts";
import { StateLines } from "./state-lines.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function here() {
  const written: string[] = [];
  const found: unknown[] = [];
  const at =
    (level: string) =>
    ({ about, ...fields }: { readonly about?: unknown }, message: string) => {
      found.push(about);
      written.push(`${level} ${message} ${JSON.stringify(fields)}`);
    };
  const lines = new StateLines({ ...silentLog, info: at("info"), warn: at("warn") });
  const fail = (source: string, kind = "TIMEOUT") =>
    lines.add({
      source,
      kind,
      level: "warn",
      many: `data sources fail with ${kind}`,
      fields: { reason: kind },
      write: () => void written.push(source),
    });
  return { lines, written, found, fail };
}

it("a switch with 180 machines is one line and a count, also where they are missed one after the other; late ones are one count more", async () => {
  const { written, found, fail } = here();
  for (let i = 1; i <= 180; i++) {
    fail(`m${i}`);
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(written).toEqual(["m1"]);
  await vi.advanceTimersByTimeAsync(5000);
  expect(written.slice(1)).toEqual([
    'warn 179 more data sources fail with TIMEOUT: m2, m3, m4, m5, m6 and 174 more {"reason":"TIMEOUT","sources":179}',
  ]);
  // Those that its words leave out are found by it, too.
  expect(found).toEqual([Array.from({ length: 179 }, (_, i) => `m${i + 2}`)]);
  for (let i = 1; i <= 5; i++) fail(`late${i}`);
  await vi.advanceTimersByTimeAsync(5000);
  expect(written.slice(2)).toEqual([
    'warn 5 more data sources fail with TIMEOUT: late1, late2, late3, late4, late5 {"reason":"TIMEOUT","sources":5}',
  ]);
  await vi.advanceTimersByTimeAsync(10_000);
  fail("again");
  expect(written.at(-1)).toBe("again");
});

it("what never becomes quiet is a count each minute", async () => {
  const { written, fail } = here();
  for (let i = 0; i < 300; i++) {
    fail(`m${i}`);
    await vi.advanceTimersByTimeAsync(1000);
  }
  expect(written.length).toBeGreaterThanOrEqual(5);
  expect(written.length).toBeLessThanOrEqual(6);
});

it("a few have a line each, and other reasons are other lines", async () => {
  const { written, fail } = here();
  for (const source of ["a", "b", "c", "d"]) fail(source);
  fail("f", "HOST_DOWN");
  expect(written).toEqual(["a", "f"]);
  await vi.advanceTimersByTimeAsync(5000);
  expect(written).toEqual(["a", "f", "b", "c", "d"]);
});

it("what is gathered is logged at the end, and no timer stays", () => {
  const { lines, written, fail } = here();
  for (let i = 1; i <= 10; i++) fail(`m${i}`);
  lines.flush();
  expect(written.at(-1)).toContain("9 more data sources");
  expect(vi.getTimerCount()).toBe(0);
});
