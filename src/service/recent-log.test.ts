import { expect, test } from "vitest";
import { LocalRequestError } from "./local-socket.ts";
import { RecentLog } from "./recent-log.ts";

const line = (n: number, source?: string) => JSON.stringify({ level: "info", msg: `line ${n}`, ...(source !== undefined && { source }) });

test("the newest lines, those about one source, and those that come after", () => {
  const log = new RecentLog();
  for (let n = 1; n <= 5; n++) log.take(`${line(n, n % 2 ? "press-1" : "oven")}\n`);
  log.take(line(6));
  expect(log.answer({ lines: 2 })).toEqual({ lines: [line(5, "press-1"), line(6)], next: 6, lost: 0 });
  expect(log.answer({ source: "oven" }).lines).toEqual([line(2, "oven"), line(4, "oven")]);
  expect(log.answer({ source: "press" }).lines).toEqual([]);
  expect(log.answer({ after: 6 })).toEqual({ lines: [], next: 6, lost: 0 });
  log.take(line(7));
  expect(log.answer({ after: 6 })).toEqual({ lines: [line(7)], next: 7, lost: 0 });
  expect(log.answer({ lines: 0 })).toEqual({ lines: [], next: 7, lost: 0 });
  // A service that was started again.
  expect(log.answer({ after: 1000 }).lines).toHaveLength(7);
  for (const wrong of [null, { after: -1 }, { lines: 501 }, { more: 1 }]) expect(() => log.answer(wrong)).toThrow(LocalRequestError);
});

test("a line about many is one about each of them", () => {
  const log = new RecentLog();
  const many = JSON.stringify({ msg: "7 more data sources fail: a, b, c, d, e and 2 more", about: ["a", "press-9"] });
  log.take(many);
  expect([log.answer({ source: "press-9" }).lines, log.answer({ source: "press-8" }).lines]).toEqual([[many], []]);
});

test("it is bounded in lines and in bytes, pages, and says what is lost", () => {
  const log = new RecentLog();
  for (let n = 1; n <= 3000; n++) log.take(line(n));
  const first = log.answer({ after: 0 });
  expect([first.lines.length, first.lost, first.lines[0], first.next]).toEqual([500, 1000, line(1001), 1500]);
  expect(log.answer({ after: first.next }).lines[0]).toBe(line(1501));
  for (let n = 1; n <= 40; n++) log.take(JSON.stringify({ msg: "x".repeat(100_000) }));
  expect(log.answer({ after: 0 }).lines.length).toBeLessThanOrEqual(10);
  log.take("x".repeat(2 ** 21));
  expect(log.answer({ lines: 1 }).lines[0]).toContain("xxx");
});
