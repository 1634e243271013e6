import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { silentLog } from "../model/context.ts";
import { StateLines } from "./state-lines.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function here() {
  const written: string[] = [];
  const at = (level: string) => (fields: object, message: string) => void written.push(`${level} ${message} ${JSON.stringify(fields)}`);
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
  return { lines, written, fail };
}

it("a switch with 180 machines is three lines and a count, and once more a count for those that are later", async () => {
  const { written, fail } = here();
  for (let i = 1; i <= 180; i++) fail(`m${i}`);
  expect(written).toEqual(["m1", "m2", "m3"]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(written.slice(3)).toEqual([
    'warn 177 more data sources fail with TIMEOUT: m4, m5, m6, m7, m8 and 172 more {"reason":"TIMEOUT","sources":177}',
  ]);
  for (let i = 1; i <= 5; i++) fail(`late${i}`);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(written.slice(4)).toEqual([
    'warn 5 more data sources fail with TIMEOUT: late1, late2, late3, late4, late5 {"reason":"TIMEOUT","sources":5}',
  ]);
  await vi.advanceTimersByTimeAsync(20_000);
  fail("again");
  expect(written.at(-1)).toBe("again");
});

it("a few have a line each, and other reasons are other lines", async () => {
  const { written, fail } = here();
  for (const source of ["a", "b", "c", "d", "e"]) fail(source);
  fail("f", "HOST_DOWN");
  expect(written).toEqual(["a", "b", "c", "f"]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(written).toEqual(["a", "b", "c", "f", "d", "e"]);
});

it("what is gathered is logged at the end, and no timer stays", () => {
  const { lines, written, fail } = here();
  for (let i = 1; i <= 10; i++) fail(`m${i}`);
  lines.flush();
  expect(written.at(-1)).toContain("7 more data sources");
  expect(vi.getTimerCount()).toBe(0);
});
