import { expect, it } from "vitest";
import { seldom } from "./seldom.ts";

it("logs an error of a kind once in ten minutes, however many requests meet it", () => {
  const lines: string[] = [];
  const at = (level: string) => (_fields: object, message: string) => void lines.push(`${level} ${message}`);
  let nowMs = 0;
  const log = seldom({ error: at("error"), debug: at("debug") }, () => nowMs);
  for (let i = 0; i < 3; i++) log("SQLITE_FULL", {}, "full");
  log("SQLITE_BUSY", {}, "busy");
  expect(lines).toEqual(["error full", "debug full", "debug full", "error busy"]);
  nowMs = 600_000;
  log("SQLITE_FULL", {}, "full");
  expect(lines.at(-1)).toBe("error full");
  for (let i = 0; i < 30; i++) log(`code ${i}`, {}, "other");
  log("SQLITE_FULL", {}, "full");
  expect(lines.at(-1)).toBe("error full");
});
